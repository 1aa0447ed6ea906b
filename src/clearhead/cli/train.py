"""``clearhead train``: train a language model on texts, or a translator on pairs of texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from clearhead.cli import interrupts
from clearhead.cli.help_texts import examples

OUT = "trained"
LOSS_ROSE = 3  # exit code


@click.command("train", short_help="Train a model on your own texts.", epilog=examples(
    "clearhead train book.txt notes/ --minutes 5 --out mine",
    "clearhead train --pairs source.txt target.txt --out translator",
    "clearhead train --from smollm2 notes/ --minutes 10 --out mine",
    "clearhead train --from smollm2 --chats chats.jsonl --lora 8",
    "clearhead train --resume --out mine",
    "torchrun --nproc-per-node 4 -m clearhead train texts/ --out mine",
))  # fmt: skip
@click.argument("texts", metavar="[TEXT]...", nargs=-1, type=click.Path())
@click.option("--pairs", is_flag=True, help="Train on pairs: TEXT is a source file and a target "
              "file, or one file with a tab in each line.")  # fmt: skip
@click.option("--out", "-o", type=click.Path(), default=OUT, show_default=True,
              help="Folder of the run and of the trained model.")  # fmt: skip
@click.option("--steps", type=int, help="Length of the run in steps, counted from its beginning.")
@click.option("--minutes", type=float, help="Length of the run in minutes.  [default: 1.5]")
@click.option("--resume", is_flag=True, help="Continue the run in --out from its last checkpoint. "
              "Only --steps and --minutes may differ: they make it longer.")  # fmt: skip
@click.option("--from", "start_from", metavar="MODEL",
              help="Train this model further, instead of a new one.")  # fmt: skip
@click.option("--chats", is_flag=True, help="TEXT is chats in JSON Lines; the answers of the "
              "assistant are learned. With --from.")  # fmt: skip
@click.option("--lora", type=int, metavar="RANK", help="Train LoRA adapters of this rank instead "
              "of the weights. With --from.")  # fmt: skip
@click.option("--freeze", multiple=True, metavar="WHAT", help="Parameters that stay as they are: "
              "embeddings, 'first 4' (layers), '*.norm.*'. May be repeated.")  # fmt: skip
@click.option("--size", metavar="NAME", help="Size of a new model: tiny, small, base, paper-base "
              "or paper-big.  [default: tiny]")  # fmt: skip
@click.option("--tokenizer", metavar="KIND", help="bpe or characters, made from TEXT; or a folder "
              "with a tokenizer.  [default: bpe]")  # fmt: skip
@click.option("--vocabulary", type=int, metavar="N", help="Number of entries of a bpe vocabulary. "
              " [default: by the length of TEXT]")  # fmt: skip
@click.option(
    "--validation",
    multiple=True,
    type=click.Path(),
    help="File to validate on; give it twice for pairs.  [default: a tenth of TEXT]",
)
@click.option("--field", metavar="NAME", help="In JSON Lines (.jsonl), the field that holds the "
              "text.  [default: text]")  # fmt: skip
@click.option("--set", "changes", multiple=True, metavar="NAME=VALUE", help="Set a field of the "
              "model or of the training: --set layers=3. May be repeated.")  # fmt: skip
@click.option("--seed", type=int, help="Random seed.  [default: 0]")
@click.option("--device", default="auto", show_default=True, help="cpu, cuda, … or auto.")
@click.option("--shard", is_flag=True, help="With torchrun: shard the model over all processes.")
@click.option("--tensorboard", is_flag=True, help="Write TensorBoard files too.")
def command(
    texts: tuple[str, ...], validation: tuple[str, ...], changes: tuple[str, ...], out: str,
    tensorboard: bool, **options: Any,
) -> None:  # fmt: skip
    """Train a model on TEXT: files, or folders of files; - is standard input.

    Files may be compressed (gzip, bz2, xz). One named .jsonl has a document in each line.

    Without TEXT, it trains on the reference text that every Python installation has. The result is
    a folder that generate, translate, look and transformers open. Ctrl-C loses nothing: the step is
    finished and saved, and --resume continues the run.

    With --from, a model that is there is trained further, at lower rates. It is validated first; if
    nothing better comes of it, the result is the model as it was. A decoder learns from texts or
    --chats, an encoder-decoder from --pairs, an encoder from texts (masked tokens) or from --pairs
    of sentences (embeddings).

    The exit code is 0; 1 for an error; 2 for wrong usage; 3 if the loss is higher at the end than
    at the beginning; 130 after Ctrl-C and 143 after SIGTERM.
    """
    from clearhead.cli.output.train_view import TrainView
    from clearhead.training.plan import sorted_fields
    from clearhead.training.processes import StopSignals, is_first_process
    from clearhead.training.run import train

    interrupts.be_patient()  # a checkpoint is written first
    model, settings = sorted_fields(_changes(changes))
    stop = StopSignals(armed=False)
    events = train(
        [Path(text) for text in texts] or None,
        validation=[Path(text) for text in validation] or None,
        out=out, model=model, settings=settings, stop=stop, **options,
    )  # fmt: skip
    view = TrainView(Path(out), tensorboard=tensorboard, silent=not is_first_process())
    try:
        with stop:
            view.show(events, stop.arm)
    except (KeyboardInterrupt, SystemExit) as end:
        view.cut_off()
        raise SystemExit(end.code if isinstance(end, SystemExit) else 130) from None
    finally:
        events.close()
    if view.stopped is not None:
        raise SystemExit(stop.exit_code)
    if view.finish():
        raise SystemExit(LOSS_ROSE)


def _changes(texts: Sequence[str]) -> dict[str, Any]:
    changes = [_change(text) for text in texts]
    names = [name for name, _ in changes]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise click.UsageError(f"--set gives {', '.join(twice)} twice.")
    return dict(changes)


def _change(text: str) -> tuple[str, Any]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise click.UsageError(f"--set wants NAME=VALUE; got {text!r}.")
    try:
        return name.strip(), json.loads(value)
    except ValueError:
        return name.strip(), value.strip()  # a word

"""The built-in model ``dates``: trained anew, always to the same weights, and put to the test.

python benchmarks/dates.py                    # trains into a new folder and reports
python benchmarks/dates.py --install          # … and makes it the one that ships
python benchmarks/dates.py --only-check       # reports on the one that ships
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.checkpoints.save import save
from clearhead.text.characters import CharacterTokenizer
from clearhead.training.data.batches.batch import IGNORED
from clearhead.training.data.batches.pairs import PairBatches, pairs_in_order
from clearhead.training.data.dates import (
    FORMS,
    HELD_OUT_FORMS,
    RECENT,
    clear,
    date_pairs,
    is_held_out,
    parts,
    written,
)
from clearhead.training.events import Finished, Stepped, Validated
from clearhead.training.initialisation import fresh_model
from clearhead.training.loop import train_task
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizes import pairs_config
from clearhead.training.tasks.task import Task

SHIPPED = Path(ch.__file__).parent / "checkpoints" / "built_in" / "dates"
SHAPE = {
    "model": 64, "layers": 1, "encoder_layers": 2, "heads": 2, "feed_forward": 128,
    "context": 64, "dropout": 0.0,
}  # fmt: skip
SETTINGS = TrainingSettings(
    steps=2200, batch_tokens=8192, warmup=200, learning_rate=3e-3, matrix_learning_rate=0.01,
    weight_decay=0.0, cooldown=0.7, floor=0.0, validate_every=200, precision="float32",
)  # fmt: skip
LEARNED, TRIED = 120_000, 5_000  # pairs


def dates_task() -> Task:
    """The model, fresh, and dates to learn from and to try it on."""
    learned = list(date_pairs(LEARNED, 1, held_out=False))
    tried = list(date_pairs(1000, 2, held_out=True))
    tokenizer = CharacterTokenizer.from_texts(source + target for source, target in learned)
    specials = {"bos": 1, "eos": (2,), "pad": 0, "start": 1}
    config = pairs_config("tiny", tokenizer.size, **SHAPE, **specials)
    batches = PairBatches(
        encoded(learned, tokenizer), batch_tokens=SETTINGS.batch_tokens, start=1, pad=0,
        seed=SETTINGS.seed,
    )  # fmt: skip
    validation = pairs_in_order(encoded(tried, tokenizer), batch_tokens=8192, start=1, pad=0)
    return Task(fresh_model(config, SETTINGS.seed), tokenizer, batches, validation)


def encoded(
    pairs: Sequence[tuple[str, str]], tokenizer: CharacterTokenizer
) -> list[tuple[list[int], list[int]]]:
    """Sources have no token at their end: there would be nothing to read in it."""
    return [(tokenizer.encode(a), [*tokenizer.encode(b), 2]) for a, b in pairs]


def accuracy(loaded: Loaded, pairs: Sequence[tuple[str, str]]) -> tuple[float, list[str]]:
    """Share of dates that greedy decoding gets wholly right, and some that it gets wrong.

    Greedy decoding is right where each character is the likeliest after the right ones before it.
    """
    model, tokenizer = loaded.model, loaded.tokenizer
    assert isinstance(model, ch.EncoderDecoder) and isinstance(tokenizer, CharacterTokenizer)
    wrong, count = [], 0
    for batch in pairs_in_order(encoded(pairs, tokenizer), batch_tokens=8192, start=1, pad=0):
        real = torch.arange(batch.source.shape[1]) < batch.source_counts[:, None]
        with torch.no_grad():
            best = model(batch.source, batch.ids, source_real=real).argmax(-1)
        right = ((best == batch.targets) | (batch.targets == IGNORED)).all(dim=1)
        count += len(right)
        for row in (~right).nonzero().flatten().tolist():
            wrong.append(
                tokenizer.decode(batch.source[row].tolist())
                + " → "
                + tokenizer.decode(best[row].tolist())
            )
    return 1 - len(wrong) / count, wrong[:5]


def alignment(loaded: Loaded, count: int = 300) -> dict[str, float]:
    """How much of its cross-attention (mean of heads) a digit of the output gives to the part of
    the source that tells it."""
    assert isinstance(loaded.tokenizer, CharacterTokenizer)
    chance = random.Random("alignment")
    sums = {"year": 0.0, "month": 0.0, "day": 0.0}
    made = 0
    while made < count:
        day = RECENT[0] + timedelta(chance.randrange((RECENT[1] - RECENT[0]).days))
        form = chance.choice(FORMS)
        if not (is_held_out(day) and clear(day, form)):
            continue
        made += 1
        source, target = written(day, form), day.isoformat()
        owners = [tells for text, tells in parts(day, form) for _ in text]
        ids = [1, *loaded.tokenizer.encode(target)]
        with torch.no_grad(), ch.watch(loaded.model) as seen:
            loaded.model(torch.tensor([loaded.tokenizer.encode(source)]), torch.tensor([ids]))
        for kind, places in (("year", range(4)), ("month", (5, 6)), ("day", (8, 9))):
            mine = torch.tensor([owner == kind for owner in owners])
            for place in places:
                for head in range(loaded.config.heads):
                    weights = seen[f"C0H{head}"].row(place)
                    share = float(weights[mine].sum()) / loaded.config.heads / len(places)
                    sums[kind] += share
    return {kind: total / count for kind, total in sums.items()}


def report(loaded: Loaded) -> None:
    print(loaded)
    for name, forms in (("forms it learned", FORMS), ("forms it never saw", HELD_OUT_FORMS)):
        right, wrong = accuracy(loaded, list(date_pairs(TRIED, 3, held_out=True, forms=forms)))
        print(f"{TRIED} dates held out, in {name}: {right:.2%} right", *wrong, sep="\n    ")
    for kind, share in alignment(loaded).items():
        print(f"cross-attention of the {kind}'s digits on the {kind} in the source: {share:.1%}")


def train_into(folder: Path) -> None:
    task = dates_task()
    for event in train_task(task, SETTINGS):
        if isinstance(event, Validated | Finished) or (
            isinstance(event, Stepped) and event.step % 100 == 0
        ):
            print(event, flush=True)
    save(task.model, folder, task.tokenizer)


def catalogue_lines(folder: Path) -> str:
    """The files as the catalogue lists them."""
    lines = []
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        lines.append(f'CatalogueFile("{path.name}", {len(content):_}, "{digest}"),')
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--install", action="store_true", help="make it the one that ships")
    parser.add_argument("--only-check", action="store_true", help="report on the one that ships")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # sums in another order give other bits
    if arguments.only_check:
        report(ch.load("dates"))
        return
    folder = Path(tempfile.mkdtemp()) / "dates"
    train_into(folder)
    report(ch.load(folder))
    if arguments.install:
        shutil.rmtree(SHIPPED, ignore_errors=True)
        shutil.copytree(folder, SHIPPED)
        folder = SHIPPED
    print(f"{folder}:\n{catalogue_lines(folder)}")


if __name__ == "__main__":
    main()

"""Prepare a run: read the texts, make the vocabulary, build the model, cut the batches."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from clearhead.checkpoints.load import Loaded, load
from clearhead.errors import InputError
from clearhead.generation.beam_search import beam_search
from clearhead.generation.generate import generate
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.corpus import python_reference, read_documents
from clearhead.training.data.packed_batches import PackedBatches, in_order
from clearhead.training.data.pair_batches import Pair, PairBatches, pairs_in_order
from clearhead.training.data.source import Content, from_lines
from clearhead.training.data.split import held_out
from clearhead.training.data.text_pairs import held_out_pairs, read_pairs
from clearhead.training.data.vocabulary import make_tokenizer
from clearhead.training.initialisation import fresh_model
from clearhead.training.plan import STORED, Plan
from clearhead.training.run_folder import RunFolder
from clearhead.training.scale import physical_memory
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizes import language_config, pairs_config
from clearhead.training.task import Task

MANY_DOCUMENTS = 20  # from so many on, a token that begins each is worth learning
PROMPT, WRITTEN = 8, 60  # tokens of a sample
MOST_LAYERS = 10_000  # building more takes hours
Trainee = Decoder | EncoderDecoder


def prepare(
    plan: Plan,
    *,
    device: torch.device | str = "cpu",
    folder: RunFolder | None = None,
    content: Mapping[str, Content] | None = None,
) -> tuple[Task, TrainingSettings, str]:
    """The task and settings of a plan, and the fingerprint of its data.

    A run that is resumed has its tokenizer and its config in its ``folder``. ``content`` holds the
    ``texts`` and the ``validation`` texts that are not yet in a file.
    """
    settings = TrainingSettings.from_fields(dict(plan.settings))
    make = _pairs_task if plan.pairs else _language_task
    read = partial(_read, plan=plan, folder=folder, content=content or {})
    task, ids = make(plan, settings, torch.device(device), folder, read)
    fingerprint = hashlib.sha256(repr(ids).encode()).hexdigest()[:16]
    if plan.fingerprint not in (None, fingerprint):
        raise InputError(
            "the texts, or the vocabulary made of them, are not those that the run began with.",
            hint="restore the files, or begin a new run from this model: --from (start_from=).",
        )
    return task, settings, fingerprint


def _read(name: str, plan: Plan, folder: RunFolder | None, content: Mapping[str, Content]) -> Any:
    """The ``texts`` or the ``validation`` texts: documents, or pairs."""
    if name in content:
        return content[name]
    paths: tuple[str, ...] = getattr(plan, name)
    if folder is not None and paths == (STORED[name],):
        return from_lines(folder.checked(paths[0]), pairs=plan.pairs)
    if plan.pairs:
        return read_pairs(paths)
    return read_documents(paths) if paths else python_reference()


def _language_task(
    plan: Plan,
    settings: TrainingSettings,
    device: torch.device,
    folder: RunFolder | None,
    read: Callable[[str], list[str]],
) -> tuple[Task, Any]:
    documents = read("texts")
    if plan.validation:
        training, validation = documents, read("validation")
    else:
        training, validation = held_out(documents, plan.held_out, settings.seed)
    many = len(training) >= MANY_DOCUMENTS
    model, tokenizer = _trainee(plan, settings, training, many, folder)
    if not isinstance(model, Decoder):
        raise InputError("texts train a decoder; this model is an encoder-decoder and wants pairs.")
    learned, tried = (
        [_document_ids(text, tokenizer, many) for text in texts] for texts in (training, validation)
    )
    _check_validation(sum(map(len, learned)), sum(map(len, tried)), "tokens")
    context = row_length(model.config, settings, sum(map(len, learned)))
    rows: dict[str, int] = {"context": context, "batch_tokens": settings.batch_tokens}
    task = Task(
        model.to(device),
        tokenizer,
        PackedBatches(learned, seed=settings.seed, **rows),
        in_order(tried, **rows),
        _text_sampler(model, tokenizer, tried[0], settings.seed),
        (sum(map(len, learned)), sum(map(len, tried))),
    )
    return task, (learned, tried)


def row_length(config: ModelConfig, settings: TrainingSettings, tokens: int) -> int:
    """How many tokens a row has: ``row``, else as many as the context and a batch hold."""
    if settings.row is not None and settings.row > config.context:
        raise InputError(
            f"a row of {settings.row} tokens is longer than the model's context of "
            f"{config.context}.",
            hint="--set row= (settings={'row': …}) of at most the context.",
        )
    wanted = settings.batch_tokens if settings.row is None else settings.row
    return min(config.context, wanted, tokens - 1)


def _pairs_task(
    plan: Plan,
    settings: TrainingSettings,
    device: torch.device,
    folder: RunFolder | None,
    read: Callable[[str], list[tuple[str, str]]],
) -> tuple[Task, Any]:
    pairs = read("texts")
    if plan.validation:
        training, validation = pairs, read("validation")
    else:
        training, validation = held_out_pairs(pairs, plan.held_out, settings.seed)
    _check_validation(len(training), len(validation), "pairs")
    texts = [text for pair in training for text in pair]
    model, tokenizer = _trainee(plan, settings, texts, True, folder)
    if not isinstance(model, EncoderDecoder):
        raise InputError("pairs train an encoder-decoder; this model is a decoder and wants texts.")
    eos, start = model.config.eos[0], model.config.start
    if start is None:
        raise InputError("this model's config does not name the token that its output starts with.")
    learned, tried = (_pair_ids(some, tokenizer, eos) for some in (training, validation))
    longest = max(len(ids) for pair in (*learned, *tried) for ids in pair)
    if longest > model.config.context:
        raise InputError(
            f"the longest text has {longest} tokens, and the context holds {model.config.context}.",
            hint=f"--set context={longest} (model={{'context': {longest}}}).",
        )
    rows = {"batch_tokens": settings.batch_tokens, "start": start, "pad": model.config.pad or 0}
    task = Task(
        model.to(device),
        tokenizer,
        PairBatches(learned, seed=settings.seed, **rows),
        pairs_in_order(tried, **rows),
        _pair_sampler(model, tokenizer, validation[0][0]),
        (_pair_tokens(learned), _pair_tokens(tried)),
    )
    return task, (learned, tried)


def _trainee(
    plan: Plan,
    settings: TrainingSettings,
    texts: Sequence[str],
    many: bool,
    folder: RunFolder | None,
) -> tuple[Any, Tokenizer]:
    """The model to train: of the run in the folder, of a model to train further, or fresh."""
    if folder is not None:
        return _resumed(plan, settings, folder)
    if plan.start_from is not None:
        return _loaded(plan.start_from)
    tokenizer = make_tokenizer(
        plan.tokenizer, texts, size=plan.vocabulary, add_bos=many and not plan.pairs,
        add_eos=plan.pairs,
    )  # fmt: skip
    config = (pairs_config if plan.pairs else language_config)(
        plan.size, tokenizer.size, **(_special_ids(plan, tokenizer, many) | plan.model)
    )
    check_buildable(config)
    return fresh_model(config, settings.seed), tokenizer


def _resumed(plan: Plan, settings: TrainingSettings, folder: RunFolder) -> tuple[Any, Tokenizer]:
    """The model that the run's record describes; its weights come from a checkpoint."""
    config = ModelConfig.from_fields(folder.record().model)
    check_buildable(config)
    if folder.checkpoints.steps():
        return build(config), folder.tokenizer()
    if plan.start_from is None:
        return fresh_model(config, settings.seed), folder.tokenizer()
    model, _ = _loaded(plan.start_from)
    if model.config != config:
        raise InputError(
            f"{plan.start_from} is not the model that the run began with.",
            hint="restore it, or begin a new run.",
        )
    return model, folder.tokenizer()


def _loaded(name: str) -> tuple[Any, Tokenizer]:
    loaded = load(name, dtype=torch.float32)  # weights that can be changed
    if loaded.tokenizer is None:
        raise InputError(f"{name} has no tokenizer, so texts mean nothing to it.")
    return loaded.model, loaded.tokenizer


def check_buildable(config: ModelConfig) -> None:
    """Refuse a model that no machine could build, before trying it for hours."""
    layers = config.layers + (config.encoder_layers or 0)
    if layers > MOST_LAYERS:
        raise InputError(f"a model of {layers} layers cannot be trained; at most {MOST_LAYERS}.")
    try:
        with torch.device("meta"):
            model = build(config)
        size = sum(tensor.nbytes for tensor in (*model.parameters(), *model.buffers()))
    except (RuntimeError, OverflowError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"a model of these sizes cannot be built: {reason}.") from None
    if size > physical_memory():
        raise InputError(
            f"the model does not fit into the memory of this machine: its weights alone take "
            f"{size / 1e9:,.0f} GB.",
            hint="choose a smaller model, layers, feed_forward, vocabulary or context.",
        )


def _special_ids(plan: Plan, tokenizer: Tokenizer, many: bool) -> dict[str, Any]:
    specials = tokenizer.specials
    if specials.eos is None:
        raise InputError("this tokenizer has no token that ends a text.")
    ids: dict[str, Any] = {"eos": (specials.eos,), "pad": specials.pad}
    if plan.pairs:
        start = specials.bos if specials.bos is not None else specials.pad
        return ids | {"bos": specials.bos, "start": start}
    return ids | ({"bos": specials.bos} if many else {})


def _document_ids(text: str, tokenizer: Tokenizer, many: bool) -> list[int]:
    """A document's ids; where there are many, the end is learned too."""
    ids, eos = tokenizer.encode(text), tokenizer.specials.eos
    return [*ids, eos] if many and eos is not None and ids[-1:] != [eos] else ids


def _pair_ids(pairs: Sequence[tuple[str, str]], tokenizer: Tokenizer, eos: int) -> list[Pair]:
    """Sources as the tokenizer gives them; targets always end with the token that ends a text."""
    found: list[Pair] = []
    for source, target in pairs:
        ids = tokenizer.encode(target)
        found.append((tokenizer.encode(source), ids if ids[-1:] == [eos] else [*ids, eos]))
    return found


def _pair_tokens(pairs: Sequence[Pair]) -> int:
    return sum(len(source) + len(target) for source, target in pairs)


def _check_validation(training: int, validation: int, what: str) -> None:
    if validation == 0:
        raise InputError(
            "nothing is left to validate on.", hint="give more text, or texts for validation."
        )
    if validation > training:
        raise InputError(
            f"the validation set is larger than the data: {validation} {what} against {training}.",
            hint="were the two swapped?",
        )


def _text_sampler(
    model: Decoder, tokenizer: Tokenizer, document: Sequence[int], seed: int
) -> Callable[[], tuple[str, str]]:
    prompt = list(document[:PROMPT])
    left = model.config.context - len(prompt)

    def sample() -> tuple[str, str]:
        loaded = Loaded("the model in training", Path(), model, model.config, tokenizer)
        events = generate(
            loaded, prompt, max_tokens=max(1, min(WRITTEN, left)), temperature=0.8, seed=seed,
            engine=False,
        )  # fmt: skip
        return tokenizer.decode(prompt), "".join(event.text for event in events)

    return sample


def _pair_sampler(
    model: EncoderDecoder, tokenizer: Tokenizer, source: str
) -> Callable[[], tuple[str, str]]:
    def sample() -> tuple[str, str]:
        loaded = Loaded("the model in training", Path(), model, model.config, tokenizer)
        found = beam_search(loaded, source, beams=1, max_tokens=WRITTEN, engine=False)
        return source, found[0].text

    return sample

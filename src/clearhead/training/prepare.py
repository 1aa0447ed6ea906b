"""Prepare a run: read the texts, make the vocabulary, build the model, cut the batches."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch

from clearhead.checkpoints.adapters.base import Base
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.beam_search import beam_search
from clearhead.generation.generate import generate
from clearhead.models import encoder as models
from clearhead.models.build import build
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.batches.packed import PackedBatches, in_order
from clearhead.training.data.batches.pairs import Pair, PairBatches, pairs_in_order
from clearhead.training.data.chats import read_chats
from clearhead.training.data.language import (
    changed_sources,
    check_learned,
    check_sizes,
    language_corpora,
    learned_too,
    validation_told,
)
from clearhead.training.data.source import Chat, Content, from_lines
from clearhead.training.data.text_pairs import held_out_pairs, read_pairs
from clearhead.training.data.tokens.data import TokenData
from clearhead.training.data.tokens.encoder import Encoder
from clearhead.training.data.tokens.file import TokenFile
from clearhead.training.data.tokens.survey import EVERY, drained
from clearhead.training.data.tokens.tokenising import tokenised
from clearhead.training.data.vocabulary import VocabularySource, make_tokenizer
from clearhead.training.events import Event, Read
from clearhead.training.initialisation import fresh_model
from clearhead.training.plan import STORED, Plan
from clearhead.training.run_folder import RunFolder
from clearhead.training.scale import physical_memory
from clearhead.training.settings import TrainingSettings
from clearhead.training.sizes import language_config, pairs_config
from clearhead.training.tasks.chats import chat_task, held_out_chats
from clearhead.training.tasks.encoders import check_masked, masked_task, sentence_task
from clearhead.training.tasks.rows import row_length, validated_on
from clearhead.training.tasks.start import base_of, start_of
from clearhead.training.tasks.task import Task

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
    """What :func:`preparing` returns, without its events."""
    return drained(preparing(plan, device=device, folder=folder, content=content))


def preparing(
    plan: Plan,
    *,
    device: torch.device | str = "cpu",
    folder: RunFolder | None = None,
    content: Mapping[str, Content] | None = None,
    tokens: Path | None = None,
) -> Generator[Event, None, tuple[Task, TrainingSettings, str]]:
    """The task and settings of a plan, and the fingerprint of its data.

    A run that has begun has its tokenizer, its tokens and its config in its ``folder``. ``content``
    holds the ``texts`` and the ``validation`` texts that are not yet in a file. ``tokens`` is the
    folder where the tokens of a new run go; they stay in memory if there is none.
    """
    settings = TrainingSettings.from_fields(dict(plan.settings))
    place = torch.device(device)
    task: Task
    if plan.pairs or plan.chats:
        read = partial(_read, plan=plan, folder=folder, content=content or {})
        parts = _parts(plan, settings, read)
        make = _pairs_task if plan.pairs else _chats_task
        task, ids = make(plan, settings, place, folder, parts)
        task = _told(task, plan, parts, begun=folder is not None)
        fingerprint = hashlib.sha256(repr(ids).encode()).hexdigest()[:16]
    else:
        task, fingerprint = yield from _language_task(
            plan, settings, place, folder, content or {}, tokens
        )
    some = validated_on(task.validation, settings)
    task = dataclasses.replace(
        task, validation=some, further=plan.start_from is not None,
        base=_base(plan, settings, folder),
        validated=None if some is task.validation else sum(batch.tokens for batch in some),
    )  # fmt: skip
    if plan.fingerprint not in (None, fingerprint):
        raise InputError(
            "the texts, or the vocabulary made of them, are not those that the run began with.",
            hint="restore the files, or begin a new run from this model: --from (start_from=).",
        )
    return task, settings, fingerprint


def content_kept(plan: Plan, content: Mapping[str, Content]) -> Mapping[str, Content]:
    """What the run folder keeps besides tokens: texts that were given, and all pairs and chats."""
    if not (plan.pairs or plan.chats):
        return content
    named = [name for name in STORED if name in content or getattr(plan, name)]
    return {name: _read(name, plan, None, content) for name in named}


def _read(name: str, plan: Plan, folder: RunFolder | None, content: Mapping[str, Content]) -> Any:
    """The pairs or chats: the ``texts``, or those for ``validation``."""
    if name in content:
        return content[name]
    if folder is not None and STORED[name] in folder.record().files:
        stored = folder.checked(STORED[name])
        return read_chats([stored]) if plan.chats else from_lines(stored, pairs=plan.pairs)
    paths: tuple[str, ...] = getattr(plan, name)
    return read_pairs(paths) if plan.pairs else read_chats(paths)


def _parts(
    plan: Plan, settings: TrainingSettings, read: Callable[[str], list[Any]]
) -> tuple[list[Any], list[Any]]:
    """The pairs or chats to train on, and those to validate on."""
    split = held_out_pairs if plan.pairs else held_out_chats
    parts = (
        (read("texts"), read("validation")) if plan.validation
        else split(read("texts"), plan.held_out, settings.seed)
    )  # fmt: skip
    _check_validation(len(parts[0]), len(parts[1]), "pairs" if plan.pairs else "chats")
    return parts


def _told(task: Task, plan: Plan, parts: tuple[list[Any], list[Any]], *, begun: bool) -> Task:
    """The task, with words on what is held out of the pairs or chats."""
    what = "pairs" if plan.pairs else "chats"
    known = set(map(repr, parts[0]))
    count = sum(repr(one) in known for one in parts[1])
    held_out = f"{len(parts[1]):,} of {len(parts[0]) + len(parts[1]):,} {what}"
    return dataclasses.replace(
        task, notes=task.notes + learned_too(count, len(parts[1]), what),
        held_out="" if begun or plan.validation else held_out,
    )  # fmt: skip


def _language_task(
    plan: Plan,
    settings: TrainingSettings,
    device: torch.device,
    folder: RunFolder | None,
    content: Mapping[str, Content],
    tokens: Path | None,
) -> Generator[Event, None, tuple[Task, str]]:
    kept, held_out = None if folder is None else folder.tokens(), ""
    if folder is not None and kept is not None:
        model, tokenizer = _resumed(plan, settings, folder)
        _check_decoder(model)
        data = TokenData.open(kept)
        data.check_ids(tokenizer.size)
        yield from changed_sources(data, plan)
    else:
        model, tokenizer, data, held_out = yield from _new_language_data(
            plan, settings, folder, content, tokens
        )
    learned, tried = data.learned, data.held
    if isinstance(model, models.Encoder):
        masked = masked_task(model, tokenizer, (learned, tried), settings, device)
        return dataclasses.replace(masked, held_out=held_out), data.fingerprint
    context = row_length(model.config, settings, learned.total)
    rows: dict[str, int] = {"context": context, "batch_tokens": settings.batch_tokens}
    validation = in_order(tried, **rows)
    task = Task(
        model.to(device),
        tokenizer,
        PackedBatches(learned, seed=settings.seed, **rows),
        validation,
        _text_sampler(
            model, tokenizer, _beginning(tried if len(tried) else learned), settings.seed
        ),
        (learned.total, tried.total),
        data.bytes_per_token,
        held_out=held_out,
    )
    return task, data.fingerprint


def _new_language_data(
    plan: Plan,
    settings: TrainingSettings,
    folder: RunFolder | None,
    content: Mapping[str, Content],
    tokens: Path | None,
) -> Generator[Event, None, tuple[Any, Tokenizer, TokenData, str]]:
    """Survey the texts, split them, make the vocabulary and the model, tokenise.

    The last thing that is returned says what is held out.
    """
    with ExitStack() as stack:
        corpora = yield from language_corpora(plan, settings.seed, content, tokens, stack)
        first = corpora[0]
        many = first.learned_documents >= MANY_DOCUMENTS
        if first.corpus.size >= EVERY:
            yield Read("making the vocabulary", 0, 0)
        source = VocabularySource(first.texts, first.learned)
        model, tokenizer = _trainee(plan, settings, source, many, folder)
        _check_decoder(model)
        encoder = Encoder(tokenizer, ends=many)
        if isinstance(model, models.Encoder):  # each row of masked tokens has its own
            encoder.before, encoder.after = [], []
        data = yield from tokenised(corpora, encoder, tokens)
    if isinstance(model, Decoder):
        check_learned(data)
    yield from validation_told(data, given=bool(plan.validation))
    return model, tokenizer, data, "" if plan.validation else first.held_out


def _beginning(tokens: TokenFile) -> list[int]:
    """The first tokens of the first document: a prompt."""
    return [int(id) for id in tokens[0][:PROMPT]]


def _check_decoder(model: object) -> None:
    """Texts train a decoder, or an encoder that predicts masked tokens."""
    if isinstance(model, models.Encoder):
        check_masked(model)
    elif not isinstance(model, Decoder):
        raise InputError("texts train a decoder; this model is an encoder-decoder and wants pairs.")


def _pairs_task(
    plan: Plan,
    settings: TrainingSettings,
    device: torch.device,
    folder: RunFolder | None,
    parts: tuple[list[tuple[str, str]], list[tuple[str, str]]],
) -> tuple[Task, Any]:
    training, validation = parts
    texts = [text for pair in training for text in pair]
    model, tokenizer = _trainee(plan, settings, VocabularySource.of(texts), True, folder)
    if isinstance(model, models.Encoder):
        return sentence_task(model, tokenizer, parts, settings, device)
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
        sum(len(target.encode()) for _, target in validation) / sum(len(ids) for _, ids in tried),
    )
    return task, (learned, tried)


def _chats_task(
    plan: Plan,
    settings: TrainingSettings,
    device: torch.device,
    folder: RunFolder | None,
    parts: tuple[list[Chat], list[Chat]],
) -> tuple[Task, Any]:
    model, tokenizer = _trainee(plan, settings, VocabularySource.of([]), True, folder)
    if not isinstance(model, Decoder):
        raise InputError(f"chats train a decoder; this model is an {model.config.kind}.")
    return chat_task(model, tokenizer, parts, settings, device)


def _trainee(
    plan: Plan,
    settings: TrainingSettings,
    source: VocabularySource,
    many: bool,
    folder: RunFolder | None,
) -> tuple[Any, Tokenizer]:
    """The model to train: of the run in the folder, of a model to train further, or fresh."""
    if folder is not None:
        return _resumed(plan, settings, folder)
    if plan.start_from is not None:
        return start_of(plan.start_from, plan.model, settings)
    tokenizer = make_tokenizer(
        plan.tokenizer, source, size=plan.vocabulary, add_bos=many and not plan.pairs,
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
    if settings.lora is None and folder.checkpoints.steps():
        return build(config), folder.tokenizer()
    if plan.start_from is None:
        return fresh_model(config, settings.seed), folder.tokenizer()
    base = plan.start_from if settings.lora is None else str(folder.base())
    model, _ = start_of(base, plan.model, settings, folder.tokenizer())
    if model.config != config:
        raise InputError(
            f"{plan.start_from} is not the model that the run began with.",
            hint="restore it, or begin a new run.",
        )
    return model, folder.tokenizer()


def _base(plan: Plan, settings: TrainingSettings, folder: RunFolder | None) -> Base | None:
    """The model that adapters are for; None where the whole model is trained."""
    if settings.lora is None or plan.start_from is None:
        return None
    return base_of(plan.start_from, None if folder is None else folder.base())


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
    check_sizes(training, validation, what)


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

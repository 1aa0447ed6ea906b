"""``make_look``: run a model on a text while watching it, or take what was watched before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.generated import WrittenText
from clearhead.explain.look import Look
from clearhead.explain.pictures import Aids
from clearhead.generation.generate import check_count, generate
from clearhead.generation.prompt import prompt_ids, start_ids, tokenizer_of
from clearhead.generation.torch_runner import context_of
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.token import Token
from clearhead.text.tokenizer import Tokenizer
from clearhead.trace.labels import Labels
from clearhead.trace.passage import Passage, passage_of
from clearhead.trace.seen import Seen
from clearhead.trace.watch import watch

TRANSLATED = 128  # tokens that an encoder-decoder may write


def make_look(
    model: object,
    text: str | None = None,
    *,
    source: str | None = None,
    word: int | str | None = None,
    head: str | None = None,
    generate: int = 0,
    aids: Aids | None = None,
) -> Look:
    """Where the words of ``text`` look.

    Args:
        model: from ``ch.load``, or what ``watch`` saw, or an opened trace (which need no text).
        text: what to read. An encoder-decoder reads it with its encoder and writes the rest by
            itself; if the ``source`` is given too, ``text`` is what its decoder reads.
        word, head: what to show first; chosen by a stated rule unless given.
        generate: how many tokens to write after the text, greedily.
        aids: reading aids; see :class:`clearhead.explain.pictures.Aids`.
    """
    check_count("generate", generate, 0)
    if isinstance(model, Seen):
        if text is not None or source is not None or generate:
            raise InputError(
                "a trace has its text already, and cannot read another one or write on.",
                hint="look(seen), or look(model, text); seen.label(tokenizer, text) names tokens.",
            )
        return Look(model, aids=aids, word=word, head=head)
    if not isinstance(model, Loaded):
        raise InputError(
            f"look wants a model from clearhead.load, or a trace; got {type(model).__name__}.",
            hint="of any torch model: with ch.watch(model) as seen: model(…), then look(seen).",
        )
    seen, written = _read(model, _checked(text), source, generate)
    return Look(
        seen, aids=aids, word=word, head=head, model=model.model, written=written, name=model.name
    )


def _read(
    loaded: Loaded, text: str, source: str | None, count: int
) -> tuple[Seen, WrittenText | None]:
    tokenizer_of(loaded, "looking at a text")
    kind = loaded.config.kind
    if kind == "encoder-decoder":
        if source is None:
            return _translated(loaded, text, count or TRANSLATED)
        return _forced(loaded, _checked(source), text)
    if source is not None:
        raise InputError(f"a source is for encoder-decoders; {loaded.name} is a {kind}.")
    if count and kind != "decoder":
        raise InputError(f"only a decoder writes on; {loaded.name} is an {kind}.")
    passage = _passage(loaded, text)
    if count:
        return _continued(loaded, passage, count)
    ids = [token.id for token in passage.tokens]
    options = {"last_only": True} if isinstance(loaded.model, Decoder) else {}
    with _quiet(loaded), watch(loaded.model, values=True) as seen:
        loaded.model(_row(loaded, ids), **options)
    seen.labels = Labels([passage])
    return seen, None


def _continued(loaded: Loaded, passage: Passage, count: int) -> tuple[Seen, WrittenText]:
    """Read the text, then write on."""
    ids = [token.id for token in passage.tokens]
    with watch(loaded.model, values=True) as seen:
        written = _written(loaded, ids, passage, count)
    seen.labels = Labels([_without_last(written.passage)])
    return seen, written


def _translated(loaded: Loaded, text: str, count: int) -> tuple[Seen, WrittenText]:
    """Read the text with the encoder, and write with the decoder."""
    source = _passage(loaded, text)
    start = Passage("", (_special(loaded, start_ids(loaded)[0], 0),))
    with watch(loaded.model, values=True) as seen:
        written = _written(loaded, [token.id for token in source.tokens], start, count)
    seen.labels = Labels([_without_last(written.passage)], [source])
    return seen, written


def _forced(loaded: Loaded, source: str, text: str) -> tuple[Seen, WrittenText | None]:
    """Both texts are given: all positions at once, as in training."""
    read, target = _passage(loaded, source), _passage(loaded, text)
    start = _special(loaded, start_ids(loaded)[0], 0)
    whole = Passage(text, (start, *target.tokens))
    ids = [token.id for token in whole.tokens[:-1]]
    assert isinstance(loaded.model, EncoderDecoder)
    with _quiet(loaded), watch(loaded.model, values=True) as seen:
        loaded.model(_row(loaded, [token.id for token in read.tokens]), _row(loaded, ids))
    seen.labels = Labels([_without_last(whole)], [read])
    return seen, WrittenText(whole, 1, (None,) * len(target))


def _written(loaded: Loaded, ids: Sequence[int], before: Passage, count: int) -> WrittenText:
    """The passage with what is written after it, greedily."""
    tokenizer = tokenizer_of(loaded, "looking at a text")
    text, tokens = before.text, list(before.tokens)
    probabilities: list[float | None] = []
    for event in generate(loaded, list(ids), max_tokens=count, temperature=0, engine=False):
        start, text = len(text), text + event.text
        if event.token is not None:
            tokens.append(_token(tokenizer, event.token, event.text, start))
            probabilities.append(event.probability)
    return WrittenText(Passage(text, tuple(tokens)), len(before), tuple(probabilities))


def _passage(loaded: Loaded, text: str) -> Passage:
    """The text's tokens as the model reads them: a decoder's text does not end with EOS."""
    passage = passage_of(tokenizer_of(loaded, "looking at a text"), text)
    ids = prompt_ids(loaded, text)
    context = context_of(loaded.config)
    if context is not None and len(ids) > context:
        raise InputError(
            f"the text has {len(ids):,} tokens, and this model's context holds {context:,}.",
            hint="look at a part of it, or take a model with a longer context (clearhead models).",
        )
    return Passage(text, passage.tokens[: len(ids)])


def _token(tokenizer: Tokenizer, id: int, text: str, start: int) -> Token:
    special = id in tokenizer.specials.all
    return Token(id, text or tokenizer.piece(id), start, start + len(text), special)


def _special(loaded: Loaded, id: int, start: int) -> Token:
    piece = tokenizer_of(loaded, "looking at a text").piece(id)
    return Token(id, piece, start, start, special=True)


def _without_last(passage: Passage) -> Passage:
    """What was read: the last token was written, but not read again."""
    return Passage(passage.text, passage.tokens[:-1])


def _row(loaded: Loaded, ids: list[int]) -> Tensor:
    return torch.tensor([ids], device=next(loaded.model.parameters()).device)


def _checked(text: object) -> str:
    if not isinstance(text, str):
        raise InputError(f"a text is wanted to look at; got {type(text).__name__}.")
    if not text.strip():
        raise InputError("the text is empty: there is nothing to look at.")
    return text


@contextmanager
def _quiet(loaded: Loaded) -> Iterator[None]:
    """No gradients, no dropout; afterwards the model is as it was."""
    training = loaded.model.training
    loaded.model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        loaded.model.train(training)

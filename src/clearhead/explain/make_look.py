"""``make_look``: run a model on a text while watching it, or take what was watched before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from clearhead.arguments import whole_number
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.generated import GeneratedText
from clearhead.explain.look import Look
from clearhead.explain.pictures import Aids
from clearhead.generation.generate import generate
from clearhead.generation.prompt import decoder_start_ids, prompt_ids, tokenizer_of
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.text.token import Token
from clearhead.text.tokenizer import Tokenizer
from clearhead.trace.labels import Labels
from clearhead.trace.passage import Passage, passage_of
from clearhead.trace.seen import Seen
from clearhead.trace.watching.watch import watch

TRANSLATED = 128  # tokens that an encoder-decoder may generate


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
    """Return what the words of ``text`` attend to.

    Args:
        model: from ``ch.load``, or a trace of ``watch``, or an opened one (these need no text).
        text: the text to read. An encoder-decoder reads it with its encoder and generates the
            rest; if the ``source`` is given too, ``text`` is what its decoder reads.
        source: the text that the encoder of an encoder-decoder reads.
        word, head: shown first; chosen by the rule of ``salience`` unless given.
        generate: how many tokens to generate after the text, greedily.
        aids: reading aids; see :class:`clearhead.explain.pictures.Aids`.

    Raises:
        InputError: the text is empty or longer than the context, or the model cannot be looked at.
    """
    generate = whole_number("generate", generate, least=0)
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
    seen, written = _read(model, checked_text(text), source, generate)
    return Look(seen, aids=aids, word=word, head=head, loaded=model, written=written)


def _read(
    loaded: Loaded, text: str, source: str | None, count: int
) -> tuple[Seen, GeneratedText | None]:
    tokenizer_of(loaded, "looking at a text")
    kind = loaded.config.kind
    if kind == "encoder-decoder":
        if source is None:
            return _translated(loaded, text, count or TRANSLATED)
        return _teacher_forced(loaded, checked_text(source), text)
    if source is not None:
        raise InputError(f"a source is for encoder-decoders; {loaded.name} is a {kind}.")
    if count and kind != "decoder":
        raise InputError(f"only a decoder writes on; {loaded.name} is an {kind}.")
    passage = read_passage(loaded, text)
    if count:
        return _continued(loaded, passage, count)
    ids = [token.id for token in passage.tokens]
    options = {"last_only": True} if isinstance(loaded.model, Decoder) else {}
    with evaluating(loaded), watch(loaded.model, values=True) as seen:
        loaded.model(_row(loaded, ids), **options)
    seen.labels = Labels([passage])
    return seen, None


def _continued(loaded: Loaded, passage: Passage, count: int) -> tuple[Seen, GeneratedText]:
    """Read the text, then generate."""
    ids = [token.id for token in passage.tokens]
    with watch(loaded.model, values=True) as seen:
        written = _written(loaded, ids, passage, count)
    seen.labels = Labels([_without_last(written.passage)])
    return seen, written


def _translated(loaded: Loaded, text: str, count: int) -> tuple[Seen, GeneratedText]:
    """Read the text with the encoder, and generate with the decoder."""
    source = read_passage(loaded, text)
    start = Passage("", (_special(loaded, decoder_start_ids(loaded)[0], 0),))
    with watch(loaded.model, values=True) as seen:
        written = _written(loaded, [token.id for token in source.tokens], start, count)
    seen.labels = Labels([_without_last(written.passage)], [source])
    return seen, written


def _teacher_forced(loaded: Loaded, source: str, text: str) -> tuple[Seen, GeneratedText | None]:
    """Read both given texts: all positions at once (teacher forcing)."""
    read, target = read_passage(loaded, source), read_passage(loaded, text)
    start = _special(loaded, decoder_start_ids(loaded)[0], 0)
    whole = Passage(text, (start, *target.tokens))
    ids = [token.id for token in whole.tokens[:-1]]
    assert isinstance(loaded.model, EncoderDecoder)
    with evaluating(loaded), watch(loaded.model, values=True) as seen:
        loaded.model(_row(loaded, [token.id for token in read.tokens]), _row(loaded, ids))
    seen.labels = Labels([_without_last(whole)], [read])
    return seen, GeneratedText(whole, 1, (None,) * len(target))


def _written(loaded: Loaded, ids: Sequence[int], before: Passage, count: int) -> GeneratedText:
    """The passage with the tokens that are generated after it, greedily."""
    tokenizer = tokenizer_of(loaded, "looking at a text")
    text, tokens = before.text, list(before.tokens)
    probabilities: list[float | None] = []
    readable = not loaded.generation.refused  # a setting for texts is no reason not to look
    for event in generate(
        loaded, list(ids), max_tokens=count, temperature=0, engine=False, file_settings=readable
    ):
        start, text = len(text), text + event.text
        if event.token is not None:
            tokens.append(_token(tokenizer, event.token, event.text, start))
            probabilities.append(event.probability)
    return GeneratedText(Passage(text, tuple(tokens)), len(before), tuple(probabilities))


def read_passage(loaded: Loaded, text: str) -> Passage:
    """The tokens of the text as the model reads them: without EOS at the end for a decoder."""
    passage = passage_of(tokenizer_of(loaded, "looking at a text"), text)
    ids = prompt_ids(loaded, text)
    context = loaded.config.longest_text
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
    """The part that was read: the last token was generated, but not read."""
    return Passage(passage.text, passage.tokens[:-1])


def _row(loaded: Loaded, ids: list[int]) -> Tensor:
    return torch.tensor([ids], device=next(loaded.model.parameters()).device)


def checked_text(text: object) -> str:
    """The text, if it is one and not empty."""
    if not isinstance(text, str):
        raise InputError(f"a text is wanted to look at; got {type(text).__name__}.")
    if not text.strip():
        raise InputError("the text is empty: there is nothing to look at.")
    return text


@contextmanager
def evaluating(loaded: Loaded) -> Iterator[None]:
    """No gradients, no dropout; the training mode is restored afterwards."""
    training = loaded.model.training
    loaded.model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        loaded.model.train(training)

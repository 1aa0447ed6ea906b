"""The function ``generate``: a prompt in, a stream of events out."""

from __future__ import annotations

import math
import secrets
from collections.abc import Generator, Mapping, Sequence

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.decoding_loop import DecodingLoop
from clearhead.generation.event import Event
from clearhead.generation.prompt import Prompt, tokenizer_of
from clearhead.generation.prompt_batch import PromptBatch
from clearhead.generation.sampling import Number
from clearhead.generation.session import Session
from clearhead.generation.settings import Settings
from clearhead.generation.stop_strings import checked_stops
from clearhead.generation.token_sampler import TokenSampler, forbidden_tokens

TEMPERATURES = {"decoder": 0.7, "encoder-decoder": 0.0}  # defaults


def generate(
    model: Loaded | Session,
    prompt: Prompt,
    *,
    max_tokens: int = 128,
    temperature: Number | None = None,
    top_k: int | None = None,
    top_p: Number | None = None,
    min_p: Number | None = None,
    typical: Number | None = None,
    repetition_penalty: Number = 1.0,
    presence_penalty: Number = 0.0,
    frequency_penalty: Number = 0.0,
    logit_bias: Mapping[int, Number] | None = None,
    stop: str | Sequence[str] = (),
    seed: int | None = None,
    samples: int = 1,
    alternatives: int = 0,
    speculate: int = 0,
    slide: bool = False,
    engine: bool | None = None,
) -> Generator[Event, None, None]:
    """Generate text after ``prompt``, as a stream of events.

    The prompt of an encoder-decoder model is the source that its encoder reads.

    Args:
        model: a model from ``ch.load``, or a :class:`Session`, which keeps its KV cache.
        prompt: a text or a list of token ids, or several of either (``event.row`` is the index).
            Each prompt of a batch gets the text that it would get alone.
        max_tokens: the largest number of tokens of each text.
        temperature: 0 takes the most likely token. Default: 0.7, or 0 for encoder-decoders.
        top_k: sample from the k most likely tokens only.
        top_p: sample from the fewest tokens whose probabilities sum to p (nucleus).
        min_p: sample from tokens with at least p times the highest probability.
        typical: locally typical sampling, up to this probability mass.
        repetition_penalty: above 1 discourages tokens of prompt and text.
        presence_penalty: above 0 discourages tokens of the text, once each.
        frequency_penalty: above 0 discourages tokens of the text, for each occurrence.
        logit_bias: numbers to add to the logits of single tokens.
        stop: strings that end the text; they are not part of it.
        seed: random seed; the same seed gives the same text. Default: a new one for each call.
        samples: the number of texts for each prompt, generated in one batch (``event.sample``).
        alternatives: the number of most likely tokens to report with each token.
        speculate: the largest number of draft tokens in a step of speculative decoding; it changes
            the speed, not the text.
        slide: drop the beginning when the context is full, instead of ending there.
        engine: True requires the CPU engine, False torch; None takes the engine if it supports
            the model.

    Returns:
        A generator of :class:`~clearhead.generation.event.Event`: one for each token, and one with
        ``finish`` at the end of each text. All ``event.text`` joined are the text.

    Raises:
        InputError: a setting or prompt is not valid, or the model cannot generate.

    >>> import clearhead as ch
    >>> dates = ch.load("dates")
    >>> "".join(event.text for event in ch.generate(dates, "5 May 2021", engine=False))
    '2021-05-05'
    """
    session = _session(model, engine)
    loaded = session.loaded
    settings = Settings(
        temperature=TEMPERATURES[loaded.config.kind] if temperature is None else temperature,
        top_k=top_k, top_p=top_p, min_p=min_p, typical=typical,
        repetition_penalty=repetition_penalty, presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty, logit_bias=_bias(loaded, logit_bias),
    )  # fmt: skip
    settings.check_vocabulary(_vocabulary(loaded))
    check_count("max_tokens", max_tokens, 1)
    check_count("samples", samples, 1)
    check_count("alternatives", alternatives, 0)
    check_count("speculate", speculate, 0)
    prompts = PromptBatch.of(loaded, prompt, slide=slide)
    stops = checked_stops(stop)
    if stops:
        tokenizer_of(loaded, "a stop string")
    rows = prompts.rows(loaded, samples, stops, _checked_seed(seed))
    if speculate and len(rows) > 1:
        raise InputError("speculate is for one text at a time; there are several here.")
    sampler = TokenSampler(settings, loaded.tokenizer, alternatives)
    return DecodingLoop(session, prompts, sampler, max_tokens, speculate).events(rows)


def check_count(name: str, count: object, least: int) -> None:
    """Raise an InputError if ``count`` is not a whole number of at least ``least``."""
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise InputError(f"{name} must be a whole number, {least} or more; got {count!r}.")


def _session(model: Loaded | Session, engine: bool | None) -> Session:
    if isinstance(model, Loaded):
        return Session(model, engine=engine)
    if not isinstance(model, Session):
        raise InputError(
            "generate needs a model from clearhead.load, or a Session; got "
            f"{type(model).__name__}.",
            hint='loaded = clearhead.load("smollm2")',
        )
    if engine is not None:
        raise InputError("the engine of a session is set when it is made: Session(…, engine=…).")
    return model


def _vocabulary(loaded: Loaded) -> int:
    """The number of tokens: some models have more entries than their tokenizer."""
    vocab = loaded.config.vocab
    return vocab if loaded.tokenizer is None else min(vocab, loaded.tokenizer.size)


def _bias(loaded: Loaded, given: Mapping[int, Number] | None) -> Mapping[int, Number]:
    """The user's logit bias, and −∞ for forbidden tokens that the user does not name."""
    forbidden = dict.fromkeys(forbidden_tokens(loaded.config), -math.inf)
    if given is None or not isinstance(given, Mapping):
        return forbidden if given is None else given  # Settings raises the error
    return forbidden | dict(given)


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"seed must be a whole number; got {seed!r}.")
    return seed

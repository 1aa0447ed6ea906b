"""``generate``: a prompt in, a stream of events out."""

from __future__ import annotations

import math
import secrets
from collections.abc import Generator, Mapping, Sequence

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.choice import Chooser, never_written
from clearhead.generation.event import Event
from clearhead.generation.prompt import Prompt, tokenizer_of
from clearhead.generation.sampling import Number
from clearhead.generation.session import Session
from clearhead.generation.settings import Settings
from clearhead.generation.starts import Starts
from clearhead.generation.stop_strings import checked_stops
from clearhead.generation.writing import Writing

TEMPERATURES = {"decoder": 0.7, "encoder-decoder": 0.0}  # a story may wander, a translation not


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
    """Write on from ``prompt``, event by event; of an encoder-decoder model it is the source.

        for event in ch.generate(loaded, "Students opened their"):
            print(event.text, end="", flush=True)

    Args:
        model: from ``ch.load``; or a :class:`Session`, which runs only what is new in a prompt.
        prompt: a text or list of token ids, or several (``event.row`` tells them apart); each
            gets what it would get alone.
        max_tokens: how many tokens at most, for each text.
        temperature: 0 takes the likeliest token; 0.7 unless given, 0 for encoder-decoders.
        top_k, top_p, min_p, typical: filters of what may be drawn (:mod:`.sampling`).
        repetition_penalty: above 1 against tokens of prompt and text (:mod:`.penalties`).
        presence_penalty, frequency_penalty: above 0 against tokens of the text.
        logit_bias: numbers to add to single tokens' logits.
        stop: strings that end the text; they are not part of it.
        seed: the same seed gives the same text.
        samples: how many texts for each prompt, written side by side (``event.sample``).
        alternatives: how many of the likeliest tokens to report with each.
        speculate: how many tokens to guess ahead from the text's own past; changes the speed,
            not the text.
        slide: forget the beginning when the context is full, instead of ending there.
        engine: False for torch alone; True insists on the CPU engine.
    """
    session = _session(model, engine)
    loaded = session.loaded
    settings = Settings(
        temperature=TEMPERATURES[loaded.config.kind] if temperature is None else temperature,
        top_k=top_k, top_p=top_p, min_p=min_p, typical=typical,
        repetition_penalty=repetition_penalty, presence_penalty=presence_penalty,
        frequency_penalty=frequency_penalty, logit_bias=_bias(loaded, logit_bias),
    )  # fmt: skip
    settings.check_vocabulary(_speakable(loaded))
    check_count("max_tokens", max_tokens, 1)
    check_count("samples", samples, 1)
    check_count("alternatives", alternatives, 0)
    check_count("speculate", speculate, 0)
    starts = Starts.of(loaded, prompt, slide=slide)
    stops = checked_stops(stop)
    if stops:
        tokenizer_of(loaded, "a stop string")
    rows = starts.rows(loaded, samples, stops, _checked_seed(seed))
    if speculate and len(rows) > 1:
        raise InputError("speculate is for one text at a time; there are several here.")
    chooser = Chooser(settings, loaded.tokenizer, alternatives)
    return Writing(session, starts, chooser, max_tokens, speculate).events(rows)


def check_count(name: str, count: object, least: int) -> None:
    """Refuse what is no whole number, or too small."""
    if isinstance(count, bool) or not isinstance(count, int) or count < least:
        raise InputError(f"{name} must be a whole number, {least} or more; got {count!r}.")


def _session(model: Loaded | Session, engine: bool | None) -> Session:
    if isinstance(model, Loaded):
        return Session(model, engine=engine)
    if not isinstance(model, Session):
        raise InputError(
            "generate wants a model from clearhead.load, or a Session; got "
            f"{type(model).__name__}.",
            hint='loaded = clearhead.load("smollm2")',
        )
    if engine is not None:
        raise InputError("a session has chosen its engine already: Session(loaded, engine=…).")
    return model


def _speakable(loaded: Loaded) -> int:
    """How many tokens can be chosen: some models have more entries than their tokenizer."""
    vocab = loaded.config.vocab
    return vocab if loaded.tokenizer is None else min(vocab, loaded.tokenizer.size)


def _bias(loaded: Loaded, given: Mapping[int, Number] | None) -> Mapping[int, Number]:
    """What the user wants, and what the model must not write unless the user wants it."""
    forbidden = dict.fromkeys(never_written(loaded.config), -math.inf)
    if given is None or not isinstance(given, Mapping):
        return forbidden if given is None else given  # which is refused where settings are checked
    return forbidden | dict(given)


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(63)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise InputError(f"seed must be a whole number; got {seed!r}.")
    return seed

"""The function ``generate``: a prompt in, a stream of events out."""

from __future__ import annotations

import secrets
from collections.abc import Generator, Mapping, Sequence

from clearhead.arguments import shown, whole_number
from clearhead.checkpoints.generation_defaults import GenerationDefaults
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.decoding_loop import DecodingLoop
from clearhead.generation.event import Event
from clearhead.generation.file_settings import (
    file_defaults,
    first_given,
    given_or_file,
    token_limit,
)
from clearhead.generation.prompt import Prompt, end_tokens, tokenizer_of
from clearhead.generation.prompt_batch import PromptBatch
from clearhead.generation.sampling import Number
from clearhead.generation.session import Session
from clearhead.generation.settings import Settings
from clearhead.generation.stop_strings import checked_stops
from clearhead.generation.token_rules import make_rules
from clearhead.generation.token_sampler import TokenSampler

TEMPERATURES = {"decoder": 0.7, "encoder-decoder": 0.0}  # defaults
MOST_TEXTS = 10_000  # in one batch, whose cache is one piece of memory


def generate(
    model: Loaded | Session,
    prompt: Prompt,
    *,
    max_tokens: int | None = None,
    temperature: Number | None = None,
    top_k: int | None = None,
    top_p: Number | None = None,
    min_p: Number | None = None,
    typical: Number | None = None,
    min_tokens_to_keep: int = 1,
    repetition_penalty: Number | None = None,
    no_repeat_ngram_size: int | None = None,
    presence_penalty: Number = 0.0,
    frequency_penalty: Number = 0.0,
    logit_bias: Mapping[int, Number] | None = None,
    stop: str | Sequence[str] | None = None,
    seed: int | None = None,
    samples: int = 1,
    alternatives: int = 0,
    speculate: int = 0,
    slide: bool = False,
    engine: bool | None = None,
    file_settings: bool = True,
) -> Generator[Event, None, None]:
    """Generate text after ``prompt``, as a stream of events.

    The prompt of an encoder-decoder model is the source that its encoder reads. What is not given
    comes from the model's files (``loaded.generation``), if they say it.

    Args:
        model: a model from ``ch.load``, or a :class:`Session`, which keeps its KV cache.
        prompt: a text or a list of token ids, or several of either (``event.row`` is the index).
            Each prompt of a batch gets the text that it would get alone.
        max_tokens: the largest number of tokens of each text. Default: the file's, or 128.
        temperature: 0 takes the most likely token. Default: the file's, or 0.7, or 0 for
            encoder-decoders.
        top_k: sample from the k most likely tokens only.
        top_p: sample from the fewest tokens whose probabilities sum to p (nucleus).
        min_p: sample from tokens with at least p times the highest probability.
        typical: locally typical sampling, up to this probability mass.
        min_tokens_to_keep: the smallest number of tokens that each of these four filters keeps.
        repetition_penalty: above 1 discourages tokens of prompt and text.
        no_repeat_ngram_size: no run of so many tokens comes twice, the prompt included; 0: off.
        presence_penalty: above 0 discourages tokens of the text, once each.
        frequency_penalty: above 0 discourages tokens of the text, for each occurrence.
        logit_bias: numbers to add to the logits of single tokens.
        stop: strings that end the text; they are not part of it.
        seed: random seed; the same seed gives the same text. Default: a new one for each call.
        samples: the number of texts for each prompt, generated in one batch (``event.sample``);
            at most 10,000 texts in all.
        alternatives: the number of most likely tokens to report with each token.
        speculate: the largest number of draft tokens in a step of speculative decoding; it changes
            the speed, not the text.
        slide: drop the beginning when the context is full, instead of ending there.
        engine: True requires the CPU engine, False torch; None takes the engine if it supports
            the model.
        file_settings: False leaves the settings of the model's files aside, but not the tokens
            that begin and end a text.

    Returns:
        A generator of :class:`~clearhead.generation.event.Event`: one for each token, and one with
        ``finish`` at the end of each text. All ``event.text`` joined are the text.

    Raises:
        InputError: a setting or prompt is not valid, the model cannot generate, or its files ask
            for something that is not offered.

    >>> import clearhead as ch
    >>> dates = ch.load("dates")
    >>> "".join(event.text for event in ch.generate(dates, "5 May 2021", engine=False))
    '2021-05-05'
    """
    session = _session(model, engine)
    loaded = session.loaded
    defaults = file_defaults(loaded, file_settings)
    bias = {} if logit_bias is None else logit_bias
    chosen = given_or_file(
        {"temperature": temperature, "top_k": top_k, "top_p": top_p, "min_p": min_p,
         "typical": typical, "repetition_penalty": repetition_penalty},
        defaults, {"temperature": TEMPERATURES[loaded.config.kind]},
    )  # fmt: skip
    settings = Settings(
        **chosen, presence_penalty=presence_penalty, frequency_penalty=frequency_penalty,
        logit_bias=bias, min_tokens_to_keep=min_tokens_to_keep,
    )  # fmt: skip
    settings.check_vocabulary(_vocabulary(loaded))
    check_count("alternatives", alternatives, 0)
    check_count("speculate", speculate, 0)
    prompts = PromptBatch.of(loaded, prompt, slide=slide)
    _check_samples(samples, len(prompts.ids))
    stops = checked_stops(first_given(stop, otherwise=defaults.stop))
    if stops:
        tokenizer_of(loaded, "a stop string")
    limits = _limits(max_tokens, defaults, prompts)
    rows = prompts.rows(loaded, samples, stops, _checked_seed(seed), limits)
    if speculate and len(rows) > 1:
        raise InputError("speculate is for one text at a time; there are several here.")
    size = ngram_size(no_repeat_ngram_size, defaults)
    ends, allowed = end_tokens(loaded), frozenset(bias)
    rules = make_rules(
        loaded.config, defaults, ends=ends, no_repeat_ngram_size=size, allowed=allowed
    )
    sampler = TokenSampler(settings, loaded.tokenizer, alternatives, rules)
    return DecodingLoop(session, prompts, sampler, ends, speculate).events(rows)


def check_count(name: str, count: object, least: int) -> None:
    """Raise an InputError if ``count`` is not a whole number of at least ``least``."""
    whole_number(name, count, least=least)


def ngram_size(given: int | None, defaults: GenerationDefaults) -> int:
    """The checked size of n-grams that may not repeat; 0: they may."""
    size = first_given(given, defaults.no_repeat_ngram_size, otherwise=0)
    return whole_number("no_repeat_ngram_size", size, least=0)


def _limits(given: int | None, defaults: GenerationDefaults, prompts: PromptBatch) -> list[int]:
    """The largest number of tokens after each prompt."""
    if given is not None:
        check_count("max_tokens", given, 1)
    return [token_limit(given, defaults, len(ids)) for ids in prompts.ids]


def _check_samples(samples: int, prompts: int) -> None:
    check_count("samples", samples, 1)
    if samples * prompts > MOST_TEXTS:
        of = f" for each of {prompts} prompts" if prompts > 1 else ""
        raise InputError(
            f"a batch holds at most {MOST_TEXTS:,} texts; got samples={shown(samples)}{of}.",
            hint="call generate several times, with different seeds.",
        )


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


def _checked_seed(seed: int | None) -> int:
    if seed is None:
        return secrets.randbits(63)
    return whole_number("seed", seed, least=-(1 << 63), most=(1 << 64) - 1)

"""generate: against transformers, batches, samples, stopping, the context's end, bad input."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.errors import ClearheadError, InputError
from clearhead.generation.event import Event
from clearhead.generation.generate import generate
from clearhead.generation.session import Session
from tests.shared.tiny_models import ENCODER_DECODERS, token_ids

GREEDY = 64
Script = Callable[[Sequence[int]], Loaded]


def ids_of(events: Iterable[Event], row: int = 0, sample: int = 0) -> list[int]:
    return [e.token for e in events if e.token is not None and (e.row, e.sample) == (row, sample)]


def text_of(events: Iterable[Event], row: int = 0, sample: int = 0) -> str:
    return "".join(e.text for e in events if (e.row, e.sample) == (row, sample))


def stopping(loaded: Loaded, eos: tuple[int, ...] = ()) -> Loaded:
    """The same model with other stop tokens; without any, texts have a known length."""
    return Loaded(loaded.name, loaded.path, loaded.model, loaded.config.changed(eos=eos), None)


def theirs(model: Any, ids: list[int], count: int, **more: Any) -> list[int]:
    from transformers import GenerationConfig

    settings = GenerationConfig(
        do_sample=False, max_new_tokens=count, min_new_tokens=count, pad_token_id=3,
        use_cache=False, eos_token_id=None, bos_token_id=None, **more,
    )  # fmt: skip
    return model.generate(torch.tensor([ids]), generation_config=settings)[0].tolist()  # type: ignore[no-any-return]


@pytest.mark.usefixtures("unchecked")
def test_marian_never_writes_padding(padding_marian: Any) -> None:
    """transformers' bad_words_ids; without them, padding is what this one says most of the time."""
    prompt, pad = token_ids(7).tolist(), 96
    more: dict[str, Any] = {"decoder_start_token_id": pad, "repetition_penalty": 1.5}
    assert theirs(padding_marian.theirs, prompt, 19, **more)[1:].count(pad) > 9
    wanted = theirs(padding_marian.theirs, prompt, 19, **more, bad_words_ids=[[pad]])[1:]
    loaded = stopping(padding_marian.loaded)
    settings: dict[str, Any] = {"max_tokens": 19, "temperature": 0, "repetition_penalty": 1.5}
    assert ids_of(generate(loaded, prompt, **settings)) == wanted
    assert pad not in wanted and len(set(wanted)) > 3
    forced = ids_of(generate(loaded, prompt, **settings, logit_bias={pad: 0.0}))
    assert forced.count(pad) > 9  # whoever asks for it gets it


@pytest.mark.parametrize(
    ("name", "penalty"),
    [("llama", 1.0), ("llama", 0.8), ("gpt2", 1.0), ("t5", 1.0), ("t5", 1.5), ("bart", 1.0),
     ("bart", 5.0)],
)  # fmt: skip
@pytest.mark.usefixtures("unchecked")
def test_greedy_is_transformers(tiny: Any, name: str, penalty: float) -> None:
    """The repetition penalty is also what keeps a tiny encoder-decoder from one word only."""
    model, prompt = tiny(name), token_ids(7).tolist()
    start = model.loaded.config.start
    more: dict[str, Any] = {"repetition_penalty": penalty}
    more |= {"decoder_start_token_id": start} if name in ENCODER_DECODERS else {}
    skipped = 1 if name in ENCODER_DECODERS else len(prompt)
    wanted = theirs(model.theirs, prompt, GREEDY, **more)[skipped:]
    options: dict[str, Any] = {"max_tokens": GREEDY, "repetition_penalty": penalty}
    events = list(generate(stopping(model.loaded), prompt, temperature=0, **options))
    assert ids_of(events) == wanted
    assert len(set(wanted)) > 3 or penalty == 1.0
    assert events[-1].finish == "max-tokens"


@pytest.mark.parametrize(
    ("name", "temperature"),
    [("llama", 0.9), ("gpt2", 0), ("mistral", 0), ("t5", 0), ("t5", 0.9), ("bart", 4.0)],
)
@pytest.mark.usefixtures("unchecked")
def test_each_row_of_a_batch_gets_what_it_gets_alone(
    tiny: Any, name: str, temperature: float
) -> None:
    loaded = stopping(tiny(name).loaded, tuple(range(0, 97, 9)))  # rows leave one after another
    prompts = [token_ids(count, seed=count).tolist() for count in (13, 3, 7, 5)]
    options: dict[str, Any] = {"max_tokens": 17, "temperature": temperature, "seed": 11}
    together = list(generate(loaded, prompts, **options))
    lengths = set()
    for row, prompt in enumerate(prompts):
        alone = list(generate(loaded, prompt, **options))
        assert ids_of(together, row) == ids_of(alone)
        mine = [event for event in together if event.row == row]
        assert [e.finish for e in mine] == [e.finish for e in alone]
        lengths.add(len(mine))
        shares = [event.probability or 0.0 for event in mine]
        assert shares == pytest.approx([event.probability or 0.0 for event in alone], rel=1e-3)
    assert len(lengths) > 1


def test_samples_at_once(tiny: Any) -> None:
    loaded, prompts = tiny("llama").loaded, [token_ids(5).tolist(), token_ids(9).tolist()]
    events = list(generate(loaded, prompts, samples=3, seed=4, max_tokens=17))
    texts = {(r, s): ids_of(events, r, s) for r in range(2) for s in range(3)}
    assert len({tuple(text) for text in texts.values()}) == 6
    alone = list(generate(loaded, prompts[1], seed=4, max_tokens=17))
    assert texts[1, 0] == ids_of(alone)  # the first sample is what comes without samples
    assert sum(event.finish is not None for event in events) == 6


def test_seed(wordy: Loaded) -> None:
    def run(seed: int | None) -> str:
        # So hot that two texts are not the same by generator: at 1.0 they are, once in thirty.
        return text_of(generate(wordy, "the door", seed=seed, temperature=9.0, max_tokens=11))

    assert run(3) == run(3)
    assert len({run(3), run(4), run(None), run(None)}) == 4


def test_probability_is_the_models_own(wordy: Loaded) -> None:
    ids = wordy.tokenizer.encode("the door")  # type: ignore[union-attr]
    event = next(generate(wordy, "the door", temperature=0, alternatives=3, logit_bias={77: 99.0}))
    logits = wordy.model(torch.tensor([ids]))[0, -1, :300]  # no more than the tokenizer knows
    shares = logits.softmax(-1)
    assert event.token == 77
    assert event.probability == pytest.approx(float(shares[77]), rel=1e-4)
    assert [a.token for a in event.alternatives] == shares.topk(3).indices.tolist()
    assert event.alternatives[0].probability == pytest.approx(float(shares.max()), rel=1e-4)
    assert all(isinstance(a.text, str) for a in event.alternatives)


def test_sampled_first_tokens_follow_the_model(wordy: Loaded) -> None:
    """The whole way: frequencies of 3,000 samples against softmax, within five deviations."""
    ids = wordy.tokenizer.encode("books")  # type: ignore[union-attr]
    shares = (wordy.model(torch.tensor([ids]))[0, -1, :300] / 0.8).double().softmax(-1)
    events = generate(wordy, "books", samples=3000, max_tokens=1, temperature=0.8, seed=0)
    tokens = torch.tensor([event.token for event in events if event.token is not None])
    seen = torch.bincount(tokens, minlength=300) / 3000
    spread = (shares * (1 - shares) / 3000).sqrt()
    assert ((seen - shares).abs() <= 5 * spread + 1 / 3000).all()


# Text


@pytest.mark.usefixtures("unchecked")
def test_text_of_all_events_is_the_text(wordy: Loaded) -> None:
    tokenizer = wordy.tokenizer
    assert tokenizer is not None
    for seed in range(3):
        events = list(generate(wordy, "the", temperature=2.0, max_tokens=30, seed=seed))
        assert text_of(events) == tokenizer.decode(ids_of(events))


def test_characters_are_never_cut(script: Script, wordy: Loaded) -> None:
    tokenizer = wordy.tokenizer
    assert tokenizer is not None
    ids = [tokenizer.id(_byte_piece(byte)) or 0 for byte in "né 😀中!".encode()]
    pieces = [e.text for e in generate(script([*ids, 2]), "the", temperature=0)]
    assert pieces == ["n", "", "é", " ", "", "", "", "😀", "", "", "中", "!", "", ""]
    cut = list(generate(script(ids), "the", temperature=0, max_tokens=6))
    assert text_of(cut) == "né �"
    assert cut[-1].text == "�"  # what never became a character is told at the end


def _byte_piece(byte: int) -> str:
    from clearhead.text.spelling import byte_alphabet

    return next(letter for letter, value in byte_alphabet().items() if value == byte)


def test_stop_strings_across_token_borders(script: Script, wordy: Loaded) -> None:
    tokenizer = wordy.tokenizer
    assert tokenizer is not None
    ids = tokenizer.encode("their minds open", special=False)
    pieces = [tokenizer.decode([id]) for id in ids]
    stop = "r min"
    assert not any(stop in piece for piece in pieces)
    events = list(generate(script([*ids, 2]), "the", temperature=0, stop=["zz", stop]))
    assert text_of(events) == "thei"
    assert events[-1].finish == "stop-string"
    assert "".join(pieces[: len(events) - 1]).find(stop) == 4  # ended where it was complete
    never = list(generate(script([*ids, 2]), "the", temperature=0, stop="opening"))
    assert text_of(never) == "their minds open"
    assert never[-1].finish == "stop-token"


def test_stop_token_is_told_but_not_shown(script: Script) -> None:
    events = list(generate(script([9, 2, 9]), "the", temperature=0))
    assert [event.token for event in events] == [9, 2, None]
    assert events[1].text == ""
    assert events[-1].finish == "stop-token"


def test_text_after_a_prompt_keeps_its_space(tmp_path: Path) -> None:
    """SentencePiece drops the space of a text's first token; after a prompt it belongs there."""
    from clearhead.text.subwords.training import train_unigram

    tokenizer = train_unigram(["the door opened the book"] * 9, 30)
    config = ch.ModelConfig(
        kind="decoder", vocab=tokenizer.size, context=32, model=8, layers=1, heads=2, feed_forward=8
    )
    loaded = Loaded("m", tmp_path, ch.Decoder(config).eval(), config, tokenizer)
    token = next(id for id in range(tokenizer.size) if tokenizer.piece(id).startswith("▁"))
    event = next(generate(loaded, "the", temperature=0, logit_bias={token: 1e6}, alternatives=1))
    assert event.text == tokenizer.piece(token).replace("▁", " ")


# The context's end


def test_context_ends_the_text(wordy: Loaded) -> None:
    events = list(generate(wordy, [5] * 50, temperature=1.3, max_tokens=100, logit_bias={2: -99.0}))
    assert events[-1].finish == "context"
    assert len(ids_of(events)) == 61 - 50 + 1  # the token after the last one that fits is known
    full = list(generate(wordy, [5] * 61, max_tokens=100))
    assert len(ids_of(full)) == 1
    assert full[-1].finish in ("context", "stop-token")


def test_prompt_that_does_not_fit(wordy: Loaded) -> None:
    with pytest.raises(InputError, match="62 tokens, and this model's context holds 61") as caught:
        generate(wordy, [5] * 62)
    assert "slide=True" in str(caught.value.hint)


@pytest.mark.usefixtures("unchecked")
def test_sliding_goes_on(wordy: Loaded) -> None:
    options: dict[str, Any] = {"temperature": 0, "slide": True, "logit_bias": {2: -99.0}}
    prompt = [1, *range(10, 90)]
    events = list(generate(wordy, prompt, max_tokens=50, **options))
    assert events[-1].finish == "max-tokens"
    ids = ids_of(events)
    seen = [1, *prompt[-29:]]  # half the context, BOS in front
    for token in ids:
        logits = wordy.model(torch.tensor([seen]))[0, -1, :300]
        logits[2] -= 99.0
        assert int(logits.argmax()) == token
        seen.append(token)
        if len(seen) > 61:
            seen = [1, *seen[-29:]]


@pytest.mark.usefixtures("unchecked")
def test_sliding_rows_do_not_disturb_others(wordy: Loaded) -> None:
    options: dict[str, Any] = {"temperature": 0, "slide": True, "max_tokens": 25,
                               "logit_bias": {2: -99.0}}  # fmt: skip
    prompts = [[1, *range(30, 85)], [1, 9, 8], [7] * 43]
    together = list(generate(wordy, prompts, **options))
    for row, prompt in enumerate(prompts):
        assert ids_of(together, row) == ids_of(generate(wordy, prompt, **options))


# Bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -1}, "temperature must be a finite number of 0 or more"),
        ({"top_k": 0}, "top_k must be a whole number of 1 or more"),
        ({"top_p": 0.0}, "top_p must be a finite number above 0"),
        ({"top_p": 1.5}, "top_p must be a finite number above 0"),
        ({"max_tokens": 0}, "max_tokens must be a whole number of 1 or more; got 0"),
        ({"samples": 0}, "samples must be a whole number of 1 or more"),
        ({"alternatives": -1}, "alternatives must be a whole number of 0 or more"),
        ({"stop": 7}, "stop must be a string or several"),
        ({"stop": [""]}, "stop must be a string or several"),
        ({"seed": 0.5}, "seed must be a whole number"),
        ({"logit_bias": {305: 1.0}}, "token 305 is not in this vocabulary of 300"),
        ({"speculate": 4, "samples": 2}, "speculate is for one text at a time"),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_refused_at_once(wordy: Loaded, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate(wordy, "the", **options)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ([1, 307], "a token id of this model is a whole number from 0 to 306; got 307"),
        ([1.5], "got 1.5"),
        (["the", 3], "a token id of this model is a whole number .* got 'the'"),
        (None, "a prompt is a text, a list of token ids, or several of either; got NoneType"),
        (torch.tensor([1]), "got Tensor"),
    ],
)
def test_prompts_that_are_none(wordy: Loaded, prompt: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        generate(wordy, prompt)


def test_empty_prompt(wordy: Loaded, tiny: Any) -> None:
    ids = ids_of(generate(wordy, "", temperature=0, max_tokens=5))
    assert ids == ids_of(generate(wordy, [1], temperature=0, max_tokens=5))  # BOS
    without = wordy.config.changed(bos=None)
    with pytest.raises(InputError, match="no token to begin a text with"):
        generate(Loaded("x", wordy.path, wordy.model, without, None), [])
    with pytest.raises(InputError, match="the prompt is empty"):
        generate(tiny("t5").loaded, [])


def test_models_without_what_it_takes(tiny: Any) -> None:
    with pytest.raises(InputError, match=r"no language-model head: it is an encoder .* 'none'"):
        generate(tiny("bert").loaded, [5])
    with pytest.raises(InputError, match="a text prompt needs a tokenizer"):
        generate(tiny("llama").loaded, "the")
    with pytest.raises(InputError, match="a stop string needs a tokenizer"):
        generate(tiny("llama").loaded, [5], stop="x")
    with pytest.raises(InputError, match="a source is read whole"):
        generate(tiny("t5").loaded, [5], slide=True)


@pytest.mark.usefixtures("unchecked")
def test_what_is_no_model(wordy: Loaded) -> None:
    with pytest.raises(
        InputError, match=r"needs a model from clearhead.load, or a Session; got str"
    ):
        generate("smollm2", "the")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="the engine of a session is set when it is made"):
        generate(Session(wordy), "the", engine=False)


def test_nothing_left_to_choose(wordy: Loaded) -> None:
    forbidden = dict.fromkeys(range(300), float("-inf"))
    with pytest.raises(ClearheadError, match="no token can be sampled"):
        next(generate(wordy, "the", logit_bias=forbidden))


def test_a_tokenizer_that_closes_every_text(wordy: Loaded) -> None:
    """The prompt is to go on: the EOS that the tokenizer adds is not a part of it."""
    from clearhead.text.subwords.training import train_bpe

    closing = train_bpe(["the door"] * 3, 270, add_bos=True, add_eos=True)
    assert closing.encode("the")[-1] == 2
    loaded = Loaded("x", wordy.path, wordy.model, wordy.config, closing)
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 4}
    ids = [1, *closing.encode("the", special=False)]
    assert ids_of(generate(loaded, "the", **options)) == ids_of(generate(loaded, ids, **options))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 10**9}, "a batch holds at most 10,000 texts; got samples=1000000000"),
        ({"samples": 10**5000}, "got samples=<int>"),
        ({"seed": 10**30}, "seed must be a whole number from -9223372036854775808"),
        ({"temperature": 10**400}, "temperature must be a finite number of 0 or more; got <int>"),
        ({"logit_bias": {5: 10**400}}, "logit_bias maps token ids to numbers, finite or -inf"),
        ({"logit_bias": {10**5000: 1.0}}, "token <int> is not in this vocabulary"),
        ({"min_tokens_to_keep": 0}, "min_tokens_to_keep must be a whole number of 1 or more"),
        ({"no_repeat_ngram_size": -1}, "no_repeat_ngram_size must be a whole number of 0 or more"),
        ({"file_settings": 1}, "file_settings must be True or False; got 1"),
    ],
)
def test_what_is_too_large_is_refused_at_once(
    wordy: Loaded, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        generate(wordy, "the", **options)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    "options",
    [
        {"max_tokens": 10**30}, {"top_k": 10**5000}, {"speculate": 10**30},
        {"no_repeat_ngram_size": 10**30}, {"min_tokens_to_keep": 10**30}, {"temperature": 1e-40},
        {"temperature": 1e300, "top_p": 1e-300}, {"min_p": 5e-324}, {"logit_bias": {5: 1e300}},
    ],
)  # fmt: skip
def test_extreme_settings_that_are_legal(wordy: Loaded, options: dict[str, Any]) -> None:
    events = list(generate(wordy, "the the the the", seed=1, **{"max_tokens": 5, **options}))
    assert events[-1].finish in ("max-tokens", "context", "stop-token")

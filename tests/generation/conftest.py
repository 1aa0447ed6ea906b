"""Tiny models: transformers' own as references, and one with words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import torch
from jaxtyping import Float
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.generation import decoding_loop, runner_factory, session
from clearhead.text.subwords.training import train_bpe

TEXT = "the students opened their books and their minds and the door 😀 naïve"


@pytest.fixture(scope="session")
def padding_marian(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A tiny Marian that likes its padding best."""
    from tests.shared.tiny_models import Tiny, make_reference, save_reference

    model = make_reference("marian")
    model.final_logits_bias[0, model.config.pad_token_id] = 60.0
    folder = save_reference(model, tmp_path_factory.mktemp("padding-marian"))
    return Tiny("marian", folder, model, ch.load(folder))


@pytest.fixture(scope="session")
def wordy() -> Loaded:
    """A decoder with random weights and a real tokenizer, whose vocabulary is smaller."""
    tokenizer = train_bpe([TEXT] * 3, 300)
    torch.manual_seed(5)
    config = ch.ModelConfig(
        kind="decoder", family="llama", vocab=307, context=61, model=24, layers=2, heads=4,
        kv_heads=2, feed_forward=31, gated=True, bos=1, eos=(2,), tied=False,
    )  # fmt: skip
    model = ch.Decoder(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        parameter.mul_(3.0)
    return Loaded("wordy", Path("wordy"), model, config, tokenizer)


@pytest.fixture(autouse=True)
def torch_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding is tested on exact numbers; tests of the CPU engine have its own."""
    monkeypatch.setattr(runner_factory, "_make_engine_runner", lambda *_: None)


class ScriptedRunner:
    """Whatever is given to it, it wants to say the tokens of its script, one after another."""

    def __init__(self, script: Sequence[int], vocab: int) -> None:
        self.script, self.vocab, self.context = list(script), vocab, None
        self.length = self.said = 0

    @property
    def lengths(self) -> list[int]:
        return [self.length]

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "batch vocab"]:
        self.length += len(rows[0])
        logits = torch.zeros(len(rows), self.vocab)
        logits[:, self.script[self.said]] = 40.0
        self.said += 1
        return logits

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        raise NotImplementedError

    def crop(self, length: int) -> None:
        self.length = length

    def reorder(self, rows: list[int]) -> None:
        pass


@pytest.fixture
def script(wordy: Loaded, monkeypatch: pytest.MonkeyPatch) -> Callable[[Sequence[int]], Loaded]:
    """A model that says exactly these tokens."""

    def say(ids: Sequence[int]) -> Loaded:
        def make_runner(*_: object, **__: object) -> ScriptedRunner:
            return ScriptedRunner(ids, wordy.config.vocab)

        monkeypatch.setattr(session, "make_runner", make_runner)
        monkeypatch.setattr(decoding_loop, "make_runner", make_runner)
        return wordy

    return say

"""Tiny models: transformers' own as references, and one with words."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

import jaxtyping
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.generation import choose, session, writing
from clearhead.text.subword_training import train_bpe

sys.path.insert(0, str(Path(__file__).parents[1] / "models"))
TEXT = "the students opened their books and their minds and the door 😀 naïve"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], object]:
    """A tiny model by name: transformers' and ours."""
    import transformers
    from tiny_models import make_tiny

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    folder = tmp_path_factory.mktemp("tiny")
    return cache(lambda name: make_tiny(name, folder / name))


@pytest.fixture(scope="session")
def padding_marian(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A tiny Marian that likes its padding best."""
    from tiny_models import Tiny, make_reference, save_reference

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
def torch_alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding is tested on exact numbers; tests of the CPU engine have its own."""
    if not request.path.name.startswith(("test_engine", "test_quantis")):
        monkeypatch.setattr(choose, "_engine_runner", lambda *_: None)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """As in production: types are not checked by the test's hook, only by our own errors.

    For wrong types, and for long runs, which the checks would make three times as long.
    """
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


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
        def runner_for(*_: object, **__: object) -> ScriptedRunner:
            return ScriptedRunner(ids, wordy.config.vocab)

        monkeypatch.setattr(session, "runner_for", runner_for)
        monkeypatch.setattr(writing, "runner_for", runner_for)
        return wordy

    return say

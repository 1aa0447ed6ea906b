"""The runner that is made for a model."""

from __future__ import annotations

from typing import Any

import pytest

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation import runner_factory
from clearhead.generation.runner import Runner
from clearhead.generation.runner_factory import make_runner
from clearhead.generation.torch_runner import TorchRunner


def test_torch_if_it_is_required(wordy: Loaded) -> None:
    runner = make_runner(wordy, engine=False)
    assert isinstance(runner, TorchRunner)
    assert isinstance(runner, Runner)


def test_torch_if_the_engine_does_not_support_the_model(
    wordy: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner_factory, "_make_engine_runner", lambda *_: None)
    assert isinstance(make_runner(wordy), TorchRunner)
    with pytest.raises(InputError, match="the CPU engine does not support wordy"):
        make_runner(wordy, engine=True)


def test_encoders_do_not_generate(tiny: Any) -> None:
    for name in ("bert", "bert-masked", "bert-labels"):
        with pytest.raises(InputError, match="has no language-model head"):
            make_runner(tiny(name).loaded)

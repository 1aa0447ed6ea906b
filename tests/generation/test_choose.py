"""Which runner is chosen."""

from __future__ import annotations

from typing import Any

import pytest

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation import choose
from clearhead.generation.choose import runner_for
from clearhead.generation.runner import Runner
from clearhead.generation.torch_runner import TorchRunner


def test_torch_where_it_is_asked_for(wordy: Loaded) -> None:
    runner = runner_for(wordy, engine=False)
    assert isinstance(runner, TorchRunner)
    assert isinstance(runner, Runner)


def test_torch_where_the_engine_does_not_serve(
    wordy: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choose, "_engine_runner", lambda *_: None)
    assert isinstance(runner_for(wordy), TorchRunner)
    with pytest.raises(InputError, match="the CPU engine does not serve wordy"):
        runner_for(wordy, engine=True)


def test_encoders_write_nothing(tiny: Any) -> None:
    for name in ("bert", "bert-masked", "bert-labels"):
        with pytest.raises(InputError, match="has no language-model head"):
            runner_for(tiny(name).loaded)

"""The engine's functions out of kept machine code: the same tokens, and no numba."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import torch

from clearhead.engine import compiled
from clearhead.engine.engine import Engine, engine_runs_here
from clearhead.engine.runner import EngineRunner
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder

pytestmark = pytest.mark.skipif(not engine_runs_here(), reason="no OpenMP or half precision here")

MODEL = """
config = ModelConfig(kind="decoder", vocab=37, context=64, model=40, layers=2, heads=2,
                     feed_forward=72, gated=True)
torch.manual_seed(0)
runner = EngineRunner(Engine(Decoder(config).eval()))
found = [runner.extend([[7, 11, 13]]).sum().item(), runner.extend([[5]]).sum().item()]
"""
PROGRAM = f"""
import json, sys, torch
from clearhead.engine.engine import Engine
from clearhead.engine.runner import EngineRunner
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
{MODEL}
print(json.dumps([found, [name for name in ("numba", "llvmlite") if name in sys.modules]]))
"""


def test_a_later_process_imports_no_numba() -> None:
    names = {"torch": torch, "Engine": Engine, "EngineRunner": EngineRunner,
             "ModelConfig": ModelConfig, "Decoder": Decoder}  # fmt: skip
    exec(MODEL, names)  # in this process, which keeps what is not kept yet
    if not compiled.step_is_kept():
        pytest.skip("nothing is kept here")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    found, imported = json.loads(done.stdout)
    assert imported == []
    assert found == names["found"]


def test_a_workspace_knows_the_kernels_sizes() -> None:
    from clearhead.engine.kernels import numbers, step

    facts = compiled.step_code().facts
    assert tuple(facts["activations"]) == numbers.ACTIVATIONS
    assert facts["group_bytes"] == numbers.QUANTISED_GROUP_BYTES
    assert facts["attention_phases"] == step.ATTENTION_PHASES
    assert facts["feed_forward_phases"] == step.FEED_FORWARD_PHASES
    assert facts["other_phases"] == step.OTHER_PHASES


def test_products_are_those_of_the_kernels() -> None:
    from clearhead.engine.kernels import matrix

    assert compiled.multiply_function("Q8_0") != 0
    assert compiled.multiply_function("Q8_0") == compiled.multiply_function("Q8_0")
    with pytest.raises(KeyError):
        compiled.multiply_function("Q9_9")
    assert set(matrix.NUMBERS) & set(matrix.FLOATS) == set()

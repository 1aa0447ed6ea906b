from __future__ import annotations

import subprocess
import sys

import pytest

import clearhead.checkpoints as checkpoints


def test_every_public_name_is_there() -> None:
    for name in checkpoints.__all__:
        assert getattr(checkpoints, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = checkpoints.nothing


def test_the_store_and_its_command_do_not_import_torch() -> None:
    program = "import sys, clearhead.checkpoints.store.model_store, clearhead.cli.models\n"
    program += "heavy = {'torch', 'numpy', 'gguf', 'huggingface_hub', 'transformers'}\n"
    program += "print(sorted(heavy & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        cwd=checkpoints.__path__[0] + "/../..",
    )
    assert done.stdout.strip() == "[]"

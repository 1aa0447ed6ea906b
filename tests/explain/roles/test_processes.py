from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from clearhead.explain.roles.planted import planted_model
from clearhead.views.roles.shown import roles
from tests.shared.role_models import some_sentences


def test_two_processes_give_the_table_of_one(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(
        "import sys\n"
        "from clearhead.explain.roles.corpus.built_in_text import made_sentences\n"
        "from clearhead.explain.roles.planted import planted_model\n"
        "from clearhead.explain.roles.processes import process_share\n"
        "from clearhead.views.roles.shown import roles\n"
        "sentences = list(made_sentences(37))\n"
        "with process_share() as share:\n"
        "    found = roles(planted_model(sentences), sentences, share=share, interventions=0)\n"
        "    if share[0] == 0:\n"
        "        found.csv(sys.argv[1])\n"
    )
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = [*launch, str(script), str(tmp_path / "two")]
    subprocess.run(command, check=True, capture_output=True, timeout=120, env=environment)
    one = roles(planted_model(some_sentences()), some_sentences(), interventions=0)
    assert one.csv() == (tmp_path / "two").read_text()

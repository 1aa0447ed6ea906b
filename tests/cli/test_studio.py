import os
import signal
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from clearhead.cli.studio import command
from clearhead.errors import StoreError


def test_a_model_that_is_none() -> None:
    with pytest.raises(StoreError, match="smollm2"):
        CliRunner().invoke(command, ["smollm3"], catch_exceptions=False)


@pytest.mark.kill
def test_it_serves_and_ctrl_c_ends_it() -> None:
    arguments = [sys.executable, "-m", "clearhead", "studio", "dates", "--no-open", "--port", "0"]
    running = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert running.stdout is not None
    try:
        line = running.stdout.readline()
        url = line.split()[-1]
        assert line.startswith("clearhead studio is at http://127.0.0.1:")
        with urllib.request.urlopen(url, timeout=60) as page:
            assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        os.kill(running.pid, signal.SIGINT)
        out, err = running.communicate(timeout=60)
        assert running.returncode == 0 and "closed" in out and "Traceback" not in err
    finally:
        running.kill()
        running.wait()

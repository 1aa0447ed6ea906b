"""The hub's client runs unchanged against a tiny hub on this machine."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

import clearhead.checkpoints.store.model_store as store_module
from clearhead.checkpoints.store.hub import choose_files, fetch_from_hub, is_hub_id
from clearhead.errors import MissingExtraError, StoreError

COMMIT = "3" * 40
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "model.safetensors": b"weights" * 1009,
    "1_Pooling/config.json": b"{}",
    "pytorch_model.bin": b"a pickle",
    "modeling_own.py": b"raise SystemExit",
}


class Hub(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        path = self.path.split("?")[0]
        file = path.removeprefix(f"/org/name/resolve/{COMMIT}/").removeprefix(
            "/org/name/resolve/main/"
        )
        if path.startswith("/api/models/org/name"):
            siblings = [{"rfilename": name, "size": len(c)} for name, c in FILES.items()]
            self.send(json.dumps({"id": "org/name", "sha": COMMIT, "siblings": siblings}).encode())
        elif file in FILES:
            self.send(FILES[file], etag=hashlib.sha256(FILES[file]).hexdigest(), body=body)
        else:
            self.send(b"{}", status=404)

    def send(self, content: bytes, etag: str = "", status: int = 200, body: bool = True) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "application/json")
        if etag:
            self.send_header("ETag", f'"{etag}"')
            self.send_header("X-Repo-Commit", COMMIT)
        if status == 404:
            self.send_header("X-Error-Code", "RepoNotFound")
        self.end_headers()
        if body:
            self.wfile.write(content)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


PROGRAM = """
import sys
from clearhead.checkpoints.store.hub import fetch_from_hub
from clearhead.errors import StoreError
seen = []
try:
    path = fetch_from_hub(sys.argv[1], lambda *news: seen.append(news))
except StoreError as error:
    print("refused:", error)
else:
    print(path)
    print(sorted(str(p.relative_to(path)) for p in path.rglob("*") if p.is_file()))
    print(seen[-1] if seen else None)
"""


def fetched(endpoint: str, home: Path, name: str = "org/name") -> list[str]:
    chosen = {"HF_ENDPOINT": endpoint, "HF_HOME": str(home), "HF_HUB_DISABLE_TELEMETRY": "1"}
    chosen |= {"PYTHONPATH": str(store_module.PACKAGE.parent), "NO_PROXY": "127.0.0.1"}
    chosen |= {"HF_HUB_DOWNLOAD_TIMEOUT": "3", "HF_HUB_ETAG_TIMEOUT": "3"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        capture_output=True,
        text=True,
        env=os.environ | chosen,
        check=True,
    )
    assert done.stderr == ""  # no progress bar of somebody else's
    return done.stdout.splitlines()


def test_fetched_then_offline_from_the_cache(hub: str, tmp_path: Path) -> None:
    path, files, last = fetched(hub, tmp_path)
    assert files == "['1_Pooling/config.json', 'config.json', 'model.safetensors']"
    total = sum(len(FILES[name]) for name in FILES if name.endswith(("json", "safetensors")))
    assert last == str((total, total, "1_Pooling/config.json"))
    nobody = "http://127.0.0.1:9"
    assert fetched(nobody, tmp_path) == [path, files, "None"]


def test_offline_with_nothing_cached(tmp_path: Path) -> None:
    text = "\n".join(fetched("http://127.0.0.1:9", tmp_path))
    assert "refused: org/name is not on this machine, and the hub did not answer" in text
    assert "give its path" in text


def test_no_such_repository(hub: str, tmp_path: Path) -> None:
    text = "\n".join(fetched(hub, tmp_path, "org/other"))
    assert "refused: there is no model 'org/other' on the hub" in text


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r"clearhead\[hub\]"):
        fetch_from_hub("org/name")


@pytest.mark.parametrize(
    "name", ["org/name", "o-1/n.a_2", "org/name/file.Q4_0.gguf", "a/b/c/d.gguf"]
)
def test_hub_ids(name: str) -> None:
    assert is_hub_id(name)


@pytest.mark.parametrize(
    "name", ["name", "/org/name", "./org/name", "../name", "a/b/c", "a/b/../c.gguf", "a/", "a b/c"]
)
def test_no_hub_ids(name: str) -> None:
    assert not is_hub_id(name)
    with pytest.raises(StoreError, match="is not a hub id"):
        fetch_from_hub(name)


def test_choosing_files() -> None:
    assert choose_files("o/n", list(FILES)) == [
        "model.safetensors",
        "config.json",
        "1_Pooling/config.json",
    ]
    both = ["consolidated.safetensors", "model-1.safetensors", "onnx/model.safetensors", "a.gguf"]
    assert choose_files("o/n", both) == ["model-1.safetensors"]
    assert choose_files("o/n", ["a.gguf", "config.json"]) == ["a.gguf", "config.json"]
    assert choose_files("o/n", ["a.gguf", "b.gguf"], "b.gguf") == ["b.gguf"]
    with pytest.raises(StoreError, match=r"has 2 GGUF files: a\.gguf, b\.gguf"):
        choose_files("o/n", ["a.gguf", "b.gguf"])
    with pytest.raises(StoreError, match=r"has no file 'c\.gguf'"):
        choose_files("o/n", ["a.gguf"], "c.gguf")
    with pytest.raises(StoreError, match="only pickles, which can run code"):
        choose_files("o/n", ["pytorch_model.bin"])
    with pytest.raises(StoreError, match=r"neither model\.safetensors nor a GGUF file"):
        choose_files("o/n", ["README.md"])

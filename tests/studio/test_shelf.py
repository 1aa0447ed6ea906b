import threading
from pathlib import Path

import pytest

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.make_look import make_look
from clearhead.studio.shelf import Shelf
from tests.shared.explain_models import decoder


def test_what_is_given_comes_first_and_nothing_else_can_be_opened(tmp_path: Path) -> None:
    path = make_look(decoder(), "the students").seen.save(tmp_path / "run.trace")
    shelf = Shelf([decoder(), decoder(), path])
    names = [one["name"] for one in shelf.described()]
    assert names[:3] == ["tiny", "tiny (2)", "run.trace"] and "smollm2" in names
    kinds = {one["name"]: one for one in shelf.described()}
    assert kinds["tiny"]["loaded"] and kinds["run.trace"]["size"] == path.stat().st_size
    assert kinds["smollm2"]["parameters"] > 1e8 and kinds["smollm2"]["size"] > 1e7
    assert isinstance(shelf.load("run.trace", lambda *_: None), ch.Seen)
    assert kinds["tiny"]["parameters"] > 0 and shelf.first == "tiny"
    for other in (str(tmp_path), "/etc/passwd", "no/such", ""):
        with pytest.raises(InputError, match="none of the models"):
            shelf.load(other, lambda *_: None)
        with pytest.raises(InputError, match="no such model"):
            shelf.worker(other)
    assert shelf.worker("tiny") is shelf.worker("tiny")
    before = threading.active_count()
    second = [shelf.worker(shelf.beside("tiny")) for _ in range(5)]
    assert len({id(one) for one in second}) == 1 and threading.active_count() == before + 1
    shelf.end()
    assert shelf.loaded("tiny") is None


def test_hostile_names_are_shown_as_signs(tmp_path: Path) -> None:
    bad = tmp_path / "\u202e<script>\x1b.gguf"
    bad.write_bytes(b"x")
    (found,) = [one for one in Shelf([bad]).described() if one.get("kind") == "file"]
    assert "\u202e" not in found["name"] and "\x1b" not in found["name"]

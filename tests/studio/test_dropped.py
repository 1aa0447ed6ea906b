import base64
import random
from pathlib import Path

import pytest

from clearhead.errors import InputError
from clearhead.explain.make_look import make_look
from clearhead.studio import dropped as module
from clearhead.studio.dropped import Dropped
from tests.shared.explain_models import decoder
from tests.studio.heard import TEXT, Talker, serving, wait_until


def text_of(data: bytes) -> str:
    return base64.b64encode(data).decode()


def send(talker: Talker, name: str, data: bytes, piece: int = 4000) -> str:
    """Drop a file as the page does; the name of the model that it becomes."""
    for first in range(0, len(data), piece):
        part = text_of(data[first : first + piece])
        found = talker.ask("drop", "dropped", "error", name=name, size=len(data), first=first,
                           data=part)  # fmt: skip
        assert found["kind"] == "dropped" and found["come"] == min(first + piece, len(data))
    model: str = found["model"]
    return model


def test_a_trace_is_dropped_seen_and_removed(tmp_path: Path) -> None:
    data = make_look(decoder(), TEXT).seen.save(tmp_path / "run.trace").read_bytes()
    with serving() as studio, Talker(studio) as other:
        with Talker(studio) as talker:
            name = send(talker, "../../run.trace", data)
            assert name == "run.trace"
            found = talker.ask("look", "look", pane=0, model=name, text="")
            assert len(found["meta"]["layers"]) == 2
            (client,) = [one for one in studio.requests.clients if one.dropped.size]
            folder = client.dropped._folder
            assert folder is not None and [one.name for one in folder.iterdir()] == [module.FILE]
            names = [one["name"] for one in talker.ask("models", "models")["models"]]
            assert name in names
            names = [one["name"] for one in other.ask("models", "models")["models"]]
            assert name not in names  # it is of one page alone
            refused = other.ask("look", "error", pane=0, model=name, text="")
            assert "no such model" in refused["text"]
        wait_until(lambda: not folder.exists())
        assert studio.requests.shelf.loaded(name) is None


def test_hostile_files_are_refused_with_our_own_errors(tmp_path: Path) -> None:
    data = make_look(decoder(), TEXT).seen.save(tmp_path / "run.trace").read_bytes()
    dice = random.Random(3)
    spoiled = bytearray(data)
    spoiled[dice.randrange(len(data) // 2, len(data))] ^= 16
    for bad in (b"x", dice.randbytes(5000), data[:-7], bytes(spoiled), b"\xff" * 8 + data[8:]):
        with serving() as studio, Talker(studio) as talker:
            name = send(talker, "<script>.trace", bad)
            refused = talker.ask("look", "error", pane=0, model=name, text="")
            assert "defect" not in (refused["hint"] or "") and "/tmp" not in refused["text"]
            assert name not in [one["name"] for one in talker.ask("models", "models")["models"]]
            assert talker.ask("look", "look", pane=0, model="tiny", text=TEXT)["meta"]


def test_pieces_are_checked() -> None:
    with pytest.raises(InputError, match="does not follow"):
        Dropped().add(0, "AAAA")
    file = Dropped()
    with pytest.raises(InputError, match="is empty"):
        file.begin(0, 0)
    with pytest.raises(InputError, match="up to 1,000 MB"):
        file.begin(module.LARGEST + 1, 0)
    with pytest.raises(InputError, match="no room"):
        file.begin(9, module.MOST_BYTES)
    file.begin(5, 0)
    for first, data, words in ((3, "AAAA", "follow"), (0, "§", "base64"), (0, "", "pieces"),
                               (0, "AAAAAAAA", "size")):  # fmt: skip
        with pytest.raises(InputError, match=words):
            file.add(first, data)
    assert file.add(0, "AAAA") is None
    path = file.add(3, text_of(b"ab"))
    assert path is not None and path.read_bytes() == b"\0\0\0ab"
    file.begin(4, 0)  # a new one takes the place of the last
    assert not path.exists()
    file.forget()

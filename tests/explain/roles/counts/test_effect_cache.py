"""Effects are kept, read again exactly, and measured again if anything is another."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clearhead.errors import CheckpointError
from clearhead.explain.roles.counts.effect_cache import EffectCache, effects_path
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.effect import Change, Effect
from clearhead.explain.roles.planted import planted_model
from clearhead.explain.roles.roles import find_roles
from tests.shared.role_models import some_sentences

FOUND = tuple(
    Effect("L3H1", "names", way, "loss", Change(0.25, 0.125, 7), Change(0.5, math.inf, 1))
    for way in ("zero", "mean")
)


def kept(folder: Path, key: str = "key") -> EffectCache:
    return EffectCache(folder / "a.counts", key, Tally())


def test_effects_come_back_as_they_were(tmp_path: Path) -> None:
    kept(tmp_path).keep(FOUND)
    assert effects_path(tmp_path / "a.counts").name == "a.counts.effects"
    assert kept(tmp_path).known == {("L3H1", "names"): FOUND}
    assert kept(tmp_path, "another run").known == {}


def test_other_sentences_are_another_key(tmp_path: Path) -> None:
    kept(tmp_path).keep(FOUND)
    tally = Tally()
    tally.add_sample("names", some_sentences()[0])
    assert EffectCache(tmp_path / "a.counts", "key", tally).known == {}


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-9],
        lambda text: text.replace("0.25", "0.26", 1),
        lambda _: "[]",
        lambda _: "null",
        lambda _: '{"checksum": 1}',
    ],
)
def test_a_damaged_file_is_not_believed(tmp_path: Path, damage: Callable[[str], str]) -> None:
    kept(tmp_path).keep(FOUND)
    path = effects_path(tmp_path / "a.counts")
    path.write_text(damage(path.read_text()))
    assert kept(tmp_path).known == {}


@pytest.mark.parametrize(
    "change",
    [
        {"way": "half"},
        {"measure": 5},
        {"head": None},
        {"at_cases": {"mean": "much", "error": 0.1, "positions": 3}},
        {"at_cases": {"mean": 0.1, "error": 0.1, "positions": -3}},
        {"at_cases": {"mean": 0.1, "error": 0.1}},
        {"more": 1},
    ],
)
def test_wrong_effects_with_a_right_checksum_are_not_believed(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    from clearhead.explain.roles.counts import effect_cache

    kept(tmp_path).keep(FOUND)
    path = effects_path(tmp_path / "a.counts")
    content = json.loads(path.read_text())
    content["effects"][0] |= change
    del content["checksum"]
    content["checksum"] = effect_cache._checksum(content)
    path.write_text(json.dumps(content))
    assert kept(tmp_path).known == {}


def test_what_cannot_be_kept_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="effects cannot be kept in"):
        kept(tmp_path / "file").keep(FOUND)


def test_nothing_is_measured_twice(tmp_path: Path) -> None:
    corpus, keep = tmp_path / "text.txt", tmp_path / "counts"
    corpus.write_text("\n\n".join(sentence.text for sentence in some_sentences()))
    model, wanted = planted_model(some_sentences()), ["previous token"]
    heard: list[str] = []

    def listen(what: str) -> Callable[[int, int | None], None]:
        heard.append(what)
        return lambda *_: None

    def found() -> Any:
        return find_roles(model, corpus, properties=wanted, keep=keep, progress=listen)

    first = found()
    assert heard == ["counting", "ablating heads"] and len(first.effects) == 2
    heard.clear()
    assert found().effects == first.effects and heard == ["counting"]
    model.model.get_parameter("stack.blocks.1.feed_forward.down.weight")[7, 0] = 0.5
    heard.clear()
    found()  # of another model
    assert heard == ["counting", "ablating heads"]

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import pytest
from made_looks import GROUP, KV_HEADS, made_look, translated_look

from clearhead.explain.pictures import Aids
from clearhead.views.page_blocks import Block
from clearhead.views.page_data import page_of_look, page_of_picture


def unpacked(block: Block) -> bytes:
    data = base64.b64decode(block.text)
    return zlib.decompress(data) if block.packed == "deflate" else data


def dense(block: Block, columns: int) -> np.ndarray:
    """The rows of a block as page/data.js reads them: (row, column) in units."""
    data = unpacked(block)
    rows, entries, _ = np.frombuffer(data[:12], "<u4").tolist()
    counts = np.frombuffer(data[12 : 12 + rows], np.uint8)
    at = 12 + rows + 4 * rows

    def read(start: int) -> np.ndarray:
        part = np.frombuffer(data[start : start + 2 * entries], np.uint8).astype(int)
        return np.asarray(part[:entries] + 256 * part[entries:])

    steps, units = read(at), read(at + 2 * entries)
    found = np.zeros((rows, columns), dtype=int)
    place = 0
    for row, count in enumerate(counts.tolist()):
        found[row, np.cumsum(steps[place : place + count])] = units[place : place + count]
        place += count
    return found


def test_every_head_has_the_numbers_of_its_picture() -> None:
    look = made_look()
    data = page_of_look(look)
    count = len(look.columns)
    for layer in data.meta["layers"]:
        rows = dense(data.blocks.by_name[layer["block"]], count).reshape(-1, count, count)
        for head, name in enumerate(layer["heads"]):
            wanted = np.rint(look.head(name).weights * 10_000)
            assert (rows[head] == wanted).all(), name


@pytest.mark.parametrize("measure", ["weight", "weight·‖v‖"])
def test_long_texts_are_cut_into_runs_with_the_same_numbers(
    monkeypatch: pytest.MonkeyPatch, measure: Any
) -> None:
    look = made_look(aids=Aids(measure=measure))
    whole = page_of_look(look)
    monkeypatch.setattr("clearhead.views.page_groups.TILE", 3 * KV_HEADS * GROUP * 14)
    runs = page_of_look(look)  # three rows at a time, and no column that none of them sees
    assert runs.blocks.by_name == whole.blocks.by_name
    assert runs.meta == whole.meta


@pytest.mark.parametrize("pool", ["max", "mean"])
def test_all_heads_together_have_the_numbers_of_their_picture(pool: Any) -> None:
    look = made_look(aids=Aids(pool=pool))
    data = page_of_look(look)
    (group,) = data.meta["groups"]
    assert group["name"] == f"all {3 * KV_HEADS * GROUP} heads"
    rows = dense(data.blocks.by_name[group["block"][pool]], len(look.columns))
    assert np.abs(rows - look.head("all").weights * 10_000).max() <= 1.01


def test_words_gaps_bands_and_the_choice() -> None:
    look = made_look()
    meta = page_of_look(look).meta
    (axis,) = meta["axes"]
    assert axis["words"][-3:] == ["right", "away", "."]
    assert axis["gaps"] == [0, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0]
    assert axis["token_texts"] == axis["words"]
    assert meta["bands"] == [{"low": [0] * 14, "high": list(range(1, 15))}]
    assert meta["chosen"] == {"head": look.chosen_head, "word": look.chosen_word}
    assert meta["layers"][0]["hidden"] == [0]
    assert meta["proof"]["exact"] is True
    assert all(note != meta["headline"] for note in meta["notes"])


def test_a_small_budget_cuts_and_says_so() -> None:
    look = made_look("one two three four five six seven " * 20)
    small, large = page_of_look(look, budget=9_000), page_of_look(look)
    assert small.meta["cut"]["units"] > large.meta["cut"]["units"] == 1
    assert small.blocks.size < large.blocks.size
    (note,) = [note for note in small.meta["notes"] if "strongest weights" in note]
    assert f"from {small.meta['cut']['units'] / 10_000:g} on" in note


def test_the_size_grows_in_proportion_to_the_text() -> None:
    sizes = []
    for words in (300, 600, 1200):
        blocks = page_of_look(made_look("word " * words, layers=1)).blocks
        names = [name for name in blocks.by_name if not name.startswith("vectors")]
        sizes.append(sum(len(blocks.by_name[name].text) for name in names))
    assert sizes[2] / sizes[1] < 2.4 and sizes[1] / sizes[0] < 2.6


def test_vectors_come_for_the_chosen_head_first_and_stay_in_their_budget() -> None:
    from clearhead.views.page_blocks import Blocks
    from clearhead.views.page_vectors import add_vectors

    look = made_look(head="L2H4")
    views = [look.seen[f"L{n}"] for n in range(3)]
    all_of_them = add_vectors(Blocks(), views, "L2H4")
    assert len(all_of_them) == 3 * KV_HEADS * GROUP
    few = Blocks()
    found = add_vectors(few, views, "L2H4", budget=4000)
    assert list(found) == ["L2H3", "L2H4", "L2H5"]  # its group shares k and v
    assert few.size <= 4000
    numbers = np.frombuffer(unpacked(few.by_name["vectors-L2-1"]), "<f4")
    record = look.seen["L2"].record
    queries = record.query[0, 3:6].numpy().ravel()
    assert (numbers[: queries.size] == queries).all()


def test_encoder_decoders_have_axes_for_each_text() -> None:
    meta = page_of_look(translated_look()).meta
    by_name = {layer["name"]: layer for layer in meta["layers"]}
    source = meta["axes"][by_name["C0"]["columns"]]
    assert source["words"] == ["le", "chat", "noir", "dort"]
    assert by_name["E0"]["rows"] == by_name["E0"]["columns"] == by_name["C0"]["columns"]
    assert by_name["C0"]["rows"] != by_name["C0"]["columns"]
    assert next(group["name"] for group in meta["groups"]) == "all 6 heads between the texts"
    assert by_name["C0"]["hidden"] == []


def test_a_single_picture_becomes_a_page() -> None:
    look = made_look()
    picture = look.head("L1H4")
    data = page_of_picture(picture)
    rows = dense(data.blocks.by_name["rows"], len(picture.columns))
    assert (rows == np.rint(picture.weights * 10_000)).all()
    assert data.meta["layers"][0]["heads"] == ["L1H4"]
    assert data.meta["gallery"] is None and data.meta["groups"] == []


def test_breaks_of_the_text_are_kept() -> None:
    look = made_look("one two\nthree, four\n\nfive six seven")
    assert page_of_look(look).meta["axes"][0]["gaps"] == [0, 1, 2, 0, 1, 2, 1, 1]

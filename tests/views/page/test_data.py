from __future__ import annotations

import numpy as np

from clearhead.views.page.data import page_of_look, page_of_picture
from tests.shared.made_looks import made_look, translated_look
from tests.shared.page_blocks import dense


def test_every_head_has_the_numbers_of_its_picture() -> None:
    look = made_look()
    data = page_of_look(look)
    count = len(look.columns)
    for layer in data.meta["layers"]:
        rows = dense(data.blocks.by_name[layer["block"]], count).reshape(-1, count, count)
        for head, name in enumerate(layer["heads"]):
            wanted = np.rint(look.head(name).weights * 10_000)
            assert (rows[head] == wanted).all(), name


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

"""``why`` inside ``ablate`` and ``patch``: the changed model is explained, and exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.checkpoints.load import Loaded
from clearhead.explain.interventions import mean_outputs
from clearhead.explain.interventions.places import places_of
from clearhead.explain.why.make_why import make_why
from clearhead.explain.why.parts import Why
from clearhead.explain.why.score import score_why
from clearhead.text.characters import CharacterTokenizer
from tests.explain.why.test_make_why import PREDICTING, own_logits
from tests.shared.explained_models import falsify_a_weight, random_decoder
from tests.shared.tiny_models import DECODERS, ENCODER_DECODERS, Tiny, token_ids

pytestmark = pytest.mark.usefixtures("one_thread")
LETTERS = CharacterTokenizer("abcdefghijk ")


def readable(loaded: Loaded) -> Loaded:
    """The model with a tokenizer, which means over texts and patches need."""
    return replace(loaded, tokenizer=LETTERS)


def explained(loaded: Loaded, **options: Any) -> Why:
    if loaded.config.kind == "encoder-decoder":
        options["source"] = token_ids(7).tolist()
    if loaded.config.kind == "encoder":
        options.setdefault("position", 5)
    return make_why(loaded, token_ids(11).tolist(), token=13, instead=29, effects=False, **options)


def places(loaded: Loaded) -> list[str | list[str]]:
    found: list[str | list[str]] = ["L0H1", ["L1H0", "L1H2"], "L0F"]
    if loaded.config.kind == "encoder-decoder":
        found += ["C1H0", "C0", ["L1", "E0H1"]]
    return found


def shared_out(name: str, found: list[Any]) -> list[Any]:
    """A family's share of the places: the families of a kind have all of them together."""
    kinds = (DECODERS, ENCODER_DECODERS, [one for one in PREDICTING if "bert" in one])
    families = next(list(kind) for kind in kinds if name in kind)
    number, many = families.index(name), len(families)
    return [found[number % len(found)]] if many > len(found) else found[number::many]


def changed(
    loaded: Loaded, wanted: list[Any]
) -> Iterator[tuple[Any, str, AbstractContextManager[None]]]:
    """Every way at some places: what is changed, how, and the block that changes it."""
    query = {"encoder": 5, "decoder": 10, "encoder-decoder": 11}[loaded.config.kind]
    for names in wanted:
        yield names, "zero", ch.ablate(loaded, names)
        yield names, "mean", ch.ablate(loaded, names, way="mean", over=["abcdefg", "gfa"])
        if "F" not in str(names):
            yield names, "edge", ch.ablate(loaded, names, source=3)
            yield names, "one edge", ch.ablate(loaded, names, source=2, query=query)
        if loaded.config.kind != "encoder-decoder":
            yield names, "patch", ch.patch(loaded, "kjihgfedcba", names)
            yield names, "patch there", ch.patch(loaded, "kjihg fedcba", names, position=5)


@pytest.mark.parametrize("name", PREDICTING)
def test_every_way_and_every_place_of_every_family(
    name: str, tiny: Callable[[str], Tiny], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mean_outputs, "WRITTEN", 3)  # tokens that an encoder-decoder writes
    loaded = readable(tiny(name).loaded)
    plain = explained(loaded)
    for names, way, block in changed(loaded, shared_out(name, places(loaded))):
        with block:
            why = explained(loaded)
            logits = own_logits(loaded, why)
        assert why.proof.exact, (names, way, why.proof)
        if why.softcap is None:
            wanted = float(logits[13] - logits[29])
            assert why.total == pytest.approx(wanted, rel=1e-4, abs=1e-4), (names, way)
        assert why.layers[-1].sum == pytest.approx(why.total, rel=1e-9, abs=1e-9)
        _check_heads(loaded, why, names, way)
        assert any("The model is changed" in note for note in why.notes)
    again = explained(loaded)
    assert again.total == plain.total and again.notes == plain.notes


def test_the_families_of_a_kind_have_all_places_together() -> None:
    found = list(range(6))
    for families in (DECODERS, ENCODER_DECODERS, ["bert-masked", "distilbert-masked"]):
        shares = [shared_out(name, found) for name in families]
        assert sorted({one for share in shares for one in share}) == found


def _check_heads(loaded: Loaded, why: Why, names: Any, way: str) -> None:
    meant = {
        f"{place.name.partition('H')[0]}H{head}"
        for place in places_of(loaded, names)
        for head in place.heads
    }
    for part in why.heads:
        given = sum(one.value for one in part.sources) + (part.replaced or 0.0)
        assert given == pytest.approx(part.value, abs=1e-9)
        whole = way in ("zero", "mean", "patch") or (way == "patch there" and why.position == 5)
        assert (part.replaced is not None) == (part.name in meant and whole)
        if part.name in meant and way == "zero":
            assert part.value == 0 and not part.sources
        if part.name in meant and "edge" in way:
            cut = [one for one in part.sources if one.column == (3 if way == "edge" else 2)]
            assert all(one.value == 0 and one.weight for one in cut)


def test_a_head_without_its_edges_is_the_head_with_their_parts_taken_away() -> None:
    """In the last layer nothing else changes: the parts of the other keys stay as they were."""
    loaded = random_decoder(norm="layer", attention_output_bias=True)
    assert isinstance(loaded.model, ch.Decoder)
    last, loaded.model.stack.norm = loaded.model.stack.norm, None
    assert last is not None
    try:
        plain = explained(loaded)
        with ch.ablate(loaded, "L2H4", source=3):
            cut = explained(loaded)
    finally:
        loaded.model.stack.norm = last
    before, after = plain.head("L2H4"), cut.head("L2H4")
    assert before is not None and after is not None
    wanted = {one.column: one.value for one in before.sources}
    found = {one.column: one.value for one in after.sources}
    assert found.pop(3) == 0 and wanted.pop(3) != 0
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("outer", ["zero", "edge"])
def test_an_edge_that_is_not_there_any_more_is_not_taken_twice(outer: str) -> None:
    loaded = random_decoder(attention_output_bias=True, window=4, sinks=True)
    ids = token_ids(1, 11)

    def block() -> AbstractContextManager[None]:
        return ch.ablate(loaded, "L1H2", source=None if outer == "zero" else 3)

    with block(), torch.no_grad():
        once = loaded.model(ids)
        with ch.ablate(loaded, "L1H2", source=3):
            assert torch.equal(loaded.model(ids), once)
            assert explained(loaded).proof.exact


def test_a_falsified_weight_is_still_found_while_another_head_is_ablated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    falsify_a_weight(monkeypatch)
    loaded = random_decoder()
    for source in (None, 3):
        with ch.ablate(loaded, "L1H4", source=source):
            assert not explained(loaded).proof.exact


def test_effects_are_those_of_the_changed_model() -> None:
    """Each row of the batch against a run of its own, with both heads ablated."""
    loaded = random_decoder()
    ids = token_ids(11).tolist()
    with ch.ablate(loaded, "L0H1"), ch.ablate(loaded, "L1H3", source=2):
        effects = make_why(loaded, ids, token=13, effects=True).effects
        assert effects is not None
        for name in ("L2H5", "L1H3", "L0F"):
            with ch.ablate(loaded, name):
                wanted = effects.target - explained_logit(loaded, ids)
            found = effects.of(name)
            assert found is not None and found.total == pytest.approx(wanted, abs=1e-4)
        unchanged = effects.of("L0H1")
        assert unchanged is not None and unchanged.total == pytest.approx(0, abs=1e-5)


def explained_logit(loaded: Loaded, ids: list[int]) -> float:
    with torch.no_grad():
        return float(loaded.model(torch.tensor([ids]))[0, -1, 13])


def test_a_score_of_the_changed_model() -> None:
    loaded = readable(random_decoder(norm_place="around"))
    text = "a b c d e f"
    plain = score_why(loaded, text, "L2H3", 5, 2)
    for block in (
        ch.ablate(loaded, ["L0H1", "L1F"]),
        ch.ablate(loaded, "L1", source=2),
        ch.patch(loaded, text[::-1], "L1H4"),
    ):
        with block:
            score = score_why(loaded, text, "L2H3", 5, 2)
        assert score.exact, score.error
        assert score.score != pytest.approx(plain.score, rel=1e-3)

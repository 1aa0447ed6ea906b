"""The proof: planted heads are found, each with its role, and nothing else is named."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch

import clearhead as ch
from clearhead.explain.roles.built_in_text import made_sentences, prose_sentences
from clearhead.explain.roles.planted import PLANTED, PlantedModel, planted_model
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.explain.roles.sentence import Sentence
from clearhead.models.config import Kind
from clearhead.text.words import WordTokenizer


@cache
def sentences() -> tuple[Sentence, ...]:
    return tuple(made_sentences(151))


@cache
def found(causal: bool) -> Roles:
    return find_roles(planted_model(sentences(), causal=causal), sentences())


@pytest.mark.parametrize("causal", [True, False], ids=["decoder", "encoder"])
def test_planted_heads_are_found_and_nothing_else_is_named(causal: bool) -> None:
    named = [(role.head, role.property) for role in found(causal).named]
    assert sorted(named) == sorted(PLANTED.items())


def test_evidence_stands_beside_each_role() -> None:
    for role in found(True).named:
        score = role.confirmed
        low, high = score.interval
        assert low <= score.accuracy <= high
        assert score.cases >= 20 and score.accuracy > score.baseline + 0.1
        assert score.mass > 0.5 and role.chance < 1e-6
    verb = next(role for role in found(True).named if role.head == "L0H2").confirmed
    assert verb.accuracy == 1.0


def test_examples_show_where_the_head_looked() -> None:
    for example in found(True).examples["L0H0", "previous token"]:
        start, end = example.span
        assert example.text[start:end] == example.query
        key = example.keys[0]
        assert example.hit and key.weight > 0.99 and key.target
        assert example.text[slice(*key.span)] == key.text
        between = example.text[key.span[1] : start]
        assert between in ("", " ")


def test_switching_off_a_head_that_hands_something_on_changes_the_model() -> None:
    effects = {(e.head, e.way): e for e in found(True).effects}
    used, unused = effects["L0H0", "zero"], effects["L0H2", "zero"]
    assert used.measure == "loss" and abs(used.at_cases.mean) > 0.1
    assert unused.at_cases.mean == 0.0  # its W_O is zero: it looks, and does nothing
    states = {(e.head, e.way): e for e in found(False).effects}["L0H0", "mean"]
    assert states.measure == "states"
    assert states.at_cases.mean > states.elsewhere.mean > 0


def test_causal_models_are_scored_in_the_direction_that_they_see() -> None:
    reports = {report.name: report for report in found(True).properties}
    assert reports["next token"].verdict == "cannot be seen"
    assert reports["det → head"].verdict == "cannot be seen"
    assert reports["det → head"].occurs > 300
    assert reports["head → det"].verdict == "scored"
    assert {r.name: r for r in found(False).properties}["det → head"].verdict == "scored"


def test_what_never_occurs_has_no_score() -> None:
    reports = {report.name: report for report in found(True).properties}
    assert reports["special token"].verdict == "never occurs"
    assert found(True).best("special token") is None


def as_numbers(roles: Roles) -> dict[str, object]:
    """Everything that was counted, by name, so that the order of names does not matter."""
    book = roles.tally.book
    return {
        f"{entry.name} {name}": held[:, :, :, number].tolist()
        for number, entry in enumerate(book.entries)
        for name, held in roles.tally.numbers.items()
    } | {"totals": roles.tally.totals, "occurs": roles.tally.occurs}


def random_model(kind: Kind, seed: int) -> PlantedModel:
    tokenizer = WordTokenizer.from_texts(sentence.text for sentence in mixed())
    torch.manual_seed(seed)
    config = ch.ModelConfig(
        kind=kind, head="language" if kind == "decoder" else "none", vocab=tokenizer.size,
        context=128, model=66, layers=3, heads=11, kv_heads=11, feed_forward=37,
        positions="rotary" if kind == "decoder" else "learned",
    )  # fmt: skip
    model = (ch.Decoder if kind == "decoder" else ch.Encoder)(config).eval().requires_grad_(False)
    return PlantedModel("random", model, tokenizer)


@cache
def mixed() -> tuple[Sentence, ...]:
    return (*made_sentences(83), *prose_sentences(47))


def sharpened(made: PlantedModel) -> PlantedModel:
    """Queries five times as long: attention that is far from even."""
    for block in made.model.stack.blocks:
        block.attention.query.weight.mul_(25.0)  # type: ignore[union-attr, operator]
    return made


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
@pytest.mark.parametrize("change", [lambda made: made, sharpened], ids=["even", "sharp"])
def test_random_models_have_no_roles(
    kind: Kind, change: Callable[[PlantedModel], PlantedModel]
) -> None:
    roles = find_roles(change(random_model(kind, 3)), mixed(), interventions=0)
    tried = roles.judgement.tried
    named = sum(role.kind not in ("position", "rest") for role in roles.named)
    assert tried > 500
    assert named <= 0.01 * tried


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_counts_do_not_depend_on_batches_or_order(kind: Kind) -> None:
    model = random_model(kind, 7)
    some = mixed()[::9]
    usual = as_numbers(find_roles(model, some, interventions=0))
    one_by_one = find_roles(model, some, interventions=0, batch_tokens=1)
    backwards = find_roles(model, some[::-1], interventions=0, batch_tokens=4096)
    assert as_numbers(one_by_one) == usual
    assert as_numbers(backwards) == usual


def test_samples_do_not_depend_on_the_order_either() -> None:
    model = random_model("decoder", 7)
    some = mixed()[::3]
    there = find_roles(model, some, interventions=0).tally.samples
    back = find_roles(model, some[::-1], interventions=0).tally.samples
    assert {name: sorted(text for _, text, _ in held) for name, held in there.items()} == {
        name: sorted(text for _, text, _ in held) for name, held in back.items()
    }

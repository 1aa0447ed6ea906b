"""The proof: planted heads are found, each with its role, and nothing else is named."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
import torch

import clearhead as ch
from clearhead.explain.roles.corpus.built_in_text import made_sentences, prose_sentences
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.explain.roles.planted import PLANTED, PlantedModel
from clearhead.explain.roles.roles import Roles, find_roles
from clearhead.models.config import Kind
from clearhead.text.words import WordTokenizer
from tests.shared.role_models import planted_roles


@pytest.mark.parametrize("causal", [True, False], ids=["decoder", "encoder"])
def test_planted_heads_are_found_and_nothing_else_is_named(causal: bool) -> None:
    named = [(role.head, role.property) for role in planted_roles(causal).named]
    assert sorted(named) == sorted(PLANTED.items())


def as_numbers(roles: Roles) -> dict[str, object]:
    """Everything that was counted, by name, so that the order of names does not matter."""
    index = roles.tally.index
    return {
        f"{entry.name} {name}": held[:, :, :, number].tolist()
        for number, entry in enumerate(index.entries)
        for name, held in roles.tally.numbers.items()
    } | {"totals": roles.tally.totals, "occurs": roles.tally.occurs}


@cache
def mixed() -> tuple[Sentence, ...]:
    return (*made_sentences(83), *prose_sentences(47))


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

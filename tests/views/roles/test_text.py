from __future__ import annotations

from dataclasses import replace

from clearhead.explain.roles.built_in_properties import BUILT_IN
from clearhead.explain.roles.corpus.built_in_text import made_sentences
from clearhead.explain.roles.effect import Change, Effect
from clearhead.explain.roles.properties import PropertyFamily
from clearhead.views.roles.text import (
    best_roles,
    cells,
    change_text,
    effect_text,
    example_pieces,
    listed_roles,
    plain_role,
    signs,
)
from tests.shared.planted_roles import shown


def test_pieces_of_an_example_are_its_sentence() -> None:
    for examples in shown().examples.values():
        for example in examples:
            pieces = [text for text, _ in example_pieces(example)]
            bare = "".join(pieces)
            for key in example.keys:
                bare = bare.replace(f" {key.weight:.2f}]", "")
            for mark in "[]«»":
                bare = bare.replace(mark, "")
            assert bare == example.text


def test_there_is_a_cell_for_every_head() -> None:
    rows = cells(shown().insight)
    assert [len(row) for row in rows] == [6, 6]
    assert [cell.sign for cell in rows[1]][1:] == [" "] * 5


def test_letters_follow_the_order_of_the_table() -> None:
    found = shown().insight
    names = list(dict.fromkeys(role.property for role in listed_roles(found)))
    assert signs(found) == dict(zip(names, "ABCDEFGH", strict=False))
    assert [role.property for role, many in best_roles(found) if many] == names


def test_every_built_in_role_has_plain_words_with_its_name_behind() -> None:
    assert plain_role("every DET") == "articles (every DET)"
    assert plain_role("head → det") == "from a word to its article (head → det)"
    assert plain_role("nsubj:pass → head") == (
        "from a subject to the word that it belongs to (nsubj:pass → head)"
    )
    plain = {"punctuation", "dates", "numbers", "names"}  # as they are
    families = {name for name, one in BUILT_IN.items() if isinstance(one, PropertyFamily)}
    resting = {name for name, one in BUILT_IN.items() if getattr(one, "kind", "") == "rest"}
    for name in BUILT_IN.keys() - plain - families - resting:
        assert plain_role(name).endswith(f" ({name})"), name
    tags = {word.pos for one in made_sentences(67) for word in one.words}
    relations = {word.relation for one in made_sentences(67) for word in one.words}
    names = [f"every {tag}" for tag in tags]
    names += [f"{one} → head" for one in relations] + [f"head → {one}" for one in relations]
    unsaid = {name for name in names if not plain_role(name).endswith(f" ({name})")}
    assert {name.strip("head →") for name in unsaid} <= {"root", ""}
    assert plain_role("my own") == "my own"


def test_changes_have_a_sign_and_an_error() -> None:
    loss = Effect(
        "L0H0", "previous token", "zero", "loss", Change(-0.5, 0.125, 7), Change(1.0, 0.0, 1)
    )
    assert change_text(loss, loss.at_cases) == "−0.50 ± 0.12"
    assert change_text(loss, loss.elsewhere) == "+1.00"
    assert change_text(loss, Change(0.0, 0.0, 0)) == "–"
    states = replace(loss, measure="states")
    assert effect_text(states).startswith("L0H0 replaced by zeros: states changed by -50.0 % at 7")

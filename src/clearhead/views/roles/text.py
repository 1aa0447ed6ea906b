"""Words and numbers of roles, the same in every renderer."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.explain.roles.effect import Change, Effect
from clearhead.explain.roles.examples import Example
from clearhead.explain.roles.judging import Role
from clearhead.explain.roles.roles import Roles

SIGNS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
SINK, NO_ROLE, OTHER = "·", " ", "*"
HEADINGS = ("head", "role", "accuracy", "95 % interval", "baseline", "cases", "weight")
SINK_NOTE = "· attends mostly to the first or special tokens (attention sink)."
CAUTION = "Attention shows where a head looks; by itself it is not an explanation of the model."


# Tags of Universal Dependencies in plain words.
PLAIN = {
    "ADJ": "adjectives", "ADP": "prepositions", "ADV": "adverbs", "AUX": "auxiliary verbs",
    "CCONJ": "words such as and, or", "DET": "articles", "INTJ": "interjections", "NOUN": "nouns",
    "NUM": "numbers", "PART": "words such as to, not", "PRON": "pronouns", "PROPN": "names",
    "PUNCT": "punctuation", "SCONJ": "words such as that, if", "SYM": "symbols", "VERB": "verbs",
    "X": "other words",
}  # fmt: skip
PLAIN_RELATIONS = {
    "acl": "clause", "advcl": "clause", "advmod": "adverb", "amod": "adjective",
    "appos": "second name", "aux": "auxiliary verb", "case": "preposition",
    "cc": "word such as and, or", "ccomp": "clause", "compound": "part of a compound",
    "conj": "second part after and, or", "cop": "form of be",
    "csubj": "clause as its subject", "det": "article", "expl": "empty it or there",
    "fixed": "next word of a fixed phrase", "flat": "rest of a name", "iobj": "indirect object",
    "mark": "word such as that, if", "nmod": "noun that describes it", "nsubj": "subject",
    "nummod": "number", "obj": "object", "obl": "noun with a preposition", "parataxis": "clause",
    "punct": "punctuation mark", "xcomp": "verb that completes it",
}  # fmt: skip
PLAIN_NAMES = {
    "itself": "the word itself", "previous token": "the word before",
    "2 before": "two words before", "next token": "the word after", "2 after": "two words after",
    "same token": "the same word, earlier", "induction": "what followed the last time",
    "coreference": "who is meant", "rarest word": "the rarest word",
}  # fmt: skip
MARKS = frozenset({"every PUNCT", "punctuation", "delimiter"})  # roles that stand apart


def plain_role(name: str) -> str:
    """A role in plain words, its tag behind: "every VERB" is "verbs (every VERB)"."""
    plain = PLAIN_NAMES.get(name) or PLAIN.get(name.removeprefix("every "))
    start, arrow, end = name.partition(" → ")
    if arrow and start == "head":
        plain = _relation("from a word to its {}", end)
    elif arrow and end == "head":
        plain = _relation("from {} to the word that it belongs to", start)
    return f"{plain} ({name})" if plain is not None else name


def _relation(said: str, name: str) -> str | None:
    """A dependency relation in plain words; subtypes (nsubj:pass) as their type."""
    plain = PLAIN_RELATIONS.get(name.partition(":")[0])
    if plain is None:
        return None
    article = "an" if plain[0] in "aeiou" else "a"
    return said.format(f"{article} {plain}" if said.startswith("from {}") else plain)


def role_groups(roles: Roles) -> list[tuple[str, list[Role]]]:
    """The roles of the table by property: the best first, punctuation at the end."""
    groups: dict[str, list[Role]] = {}
    for role in listed_roles(roles):
        groups.setdefault(role.property, []).append(role)
    return sorted(groups.items(), key=lambda one: one[0] in MARKS)


def resting_heads(roles: Roles) -> list[str]:
    """Heads that attend mostly to the first or special tokens, and have no role."""
    return [
        cell.head for row in cells(roles) for cell in row if cell.role is None and cell.sign == SINK
    ]


@dataclass(frozen=True)
class Cell:
    """One head of the picture: its letter, its role, and how often it attends to sink tokens."""

    head: str
    sign: str
    role: Role | None
    sink_share: float


def listed_roles(roles: Roles) -> list[Role]:
    """The roles of the table; heads that are only an attention sink are counted in a note."""
    return [role for role in roles.named if role.kind != "rest"]


def best_roles(roles: Roles, each: int = 2) -> list[tuple[Role, int]]:
    """Of every property the best heads, and at the first of them how many there are."""
    groups: dict[str, list[Role]] = {}
    for role in listed_roles(roles):
        groups.setdefault(role.property, []).append(role)
    return [
        (role, 0 if place else len(group))
        for group in groups.values()
        for place, role in enumerate(group[:each])
    ]


def signs(roles: Roles) -> dict[str, str]:
    """A letter for each property of the table, in its order."""
    names = list(dict.fromkeys(role.property for role in listed_roles(roles)))
    return {name: SIGNS[at] if at < len(SIGNS) else OTHER for at, name in enumerate(names)}


def cells(roles: Roles) -> list[list[Cell]]:
    """All heads, a row for each layer."""
    letter = signs(roles)
    rows: list[list[Cell]] = [[] for _ in roles.layers]
    for head in roles.heads:
        role = next((role for role in head.roles if role.kind != "rest"), None)
        sign = SINK if head.sink_share >= 0.5 else NO_ROLE
        if role is not None:
            sign = letter[role.property]
        rows[head.layer].append(Cell(head.name, sign, role, head.sink_share))
    return rows


def row(role: Role) -> tuple[str, ...]:
    """A role as the cells of the table, without its sign."""
    score = role.confirmed
    low, high = score.interval
    return (
        role.head,
        role.property,
        percent(score.accuracy),
        f"{100 * low:.0f} … {percent(high)}",
        percent(score.baseline),
        f"{score.cases:,}",
        f"{score.mass:.2f}",
    )


def percent(share: float) -> str:
    """A share as whole percent."""
    return f"{100 * share:.0f} %"


def effect_rows(effects: tuple[Effect, ...]) -> list[tuple[str, ...]]:
    """Head, role, and the changes at its cases and elsewhere: by zeros, then by its mean."""
    rows: dict[tuple[str, str], list[str]] = {}
    for effect in effects:
        row = rows.setdefault((effect.head, effect.property), [])
        row += [change_text(effect, effect.at_cases), change_text(effect, effect.elsewhere)]
    return [(head, name, *changes) for (head, name), changes in rows.items()]


EFFECT_HEADINGS = ("head", "role", "zeros: its cases", "elsewhere", "mean: its cases", "elsewhere")


def effect_unit(effects: tuple[Effect, ...]) -> str:
    """The unit of the effects, in words."""
    if effects[0].measure == "loss":
        how = "± its standard error, where the head's output is replaced by zeros or by its mean"
        return f"change of the loss in nats, {how}"
    how = "where the head's output is replaced by zeros or its mean"
    return f"relative change of the final hidden states, {how}"


def effect_text(effect: Effect) -> str:
    """The effect of ablating a head, in one line."""
    way = "zeros" if effect.way == "zero" else "its mean"
    unit = "loss" if effect.measure == "loss" else "states changed by"
    return (
        f"{effect.head} replaced by {way}: {unit} {change_text(effect, effect.at_cases)} at "
        f"{effect.at_cases.positions} cases of “{effect.property}”, "
        f"{change_text(effect, effect.elsewhere)} elsewhere"
    )


def change_text(effect: Effect, change: Change) -> str:
    """A change with its standard error: nats of loss, or percent of the states."""
    if not change.positions:
        return "–"
    if effect.measure == "states":
        return f"{100 * change.mean:.1f} %"
    sign = "−" if change.mean < 0 else "+"
    error = f" ± {change.error:.2f}" if change.positions > 1 else ""
    return f"{sign}{abs(change.mean):.2f}{error}"


def example_pieces(example: Example) -> list[tuple[str, str]]:
    """The sentence in pieces, each with what it is: "", "query", "target" or "miss"."""
    shown = [key for key in example.keys if key.weight >= 0.05 and key.span[0] < key.span[1]]
    marks = {key.span: ("target" if key.target else "miss", key.weight) for key in shown}
    pieces, place = [], 0
    for span in sorted({example.span, *marks}):
        if span[0] < place:
            continue
        pieces.append((example.text[place : span[0]], ""))
        kind, weight = marks.get(span, ("", None))
        text = example.text[span[0] : span[1]]
        if span == example.span:
            text, kind = f"«{text}»", "query" if weight is None else kind
        pieces.append((text if weight is None else f"[{text} {weight:.2f}]", kind))
        place = span[1]
    return [piece for piece in [*pieces, (example.text[place:], "")] if piece[0]]

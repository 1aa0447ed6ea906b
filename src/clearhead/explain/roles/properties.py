"""Properties: for each query of a sentence, the target positions that a head may specialise in.

A property is one function. It takes a :class:`TokenisedSentence` and returns the targets of every
query that is a case of it::

    def after_a_comma(sentence):
        commas = [i for i, unit in enumerate(sentence.units) if unit.text == ","]
        return {query: [comma for comma in commas if comma < query] for query in range(...)}

Positions count units (words), or tokens with ``level="tokens"``. Queries without a target are no
cases. Scoring leaves out what the mask of the model hides; a property need not know it. A
:class:`PropertyFamily` returns several properties by name, such as one for each relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from clearhead.arguments import one_of, shown, text
from clearhead.errors import InputError
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence

Targets: TypeAlias = Mapping[int, Sequence[int]]
Level: TypeAlias = Literal["tokens", "words"]
# How it is judged: position: 90 % of the strongest keys (Voita et al. 2019); rest: attention sinks
# (first and special tokens), judged alike; content: above the baselines;
# relation: also above a random choice among keys of the target's own word kind.
Kind: TypeAlias = Literal["position", "rest", "content", "relation"]


@dataclass(frozen=True)
class Property:
    """One property of attention: its name and the function that returns its targets.

    Args:
        name: must differ from the names of the other properties.
        targets: from a :class:`TokenisedSentence` to the targets of each query.
        level: whether positions count words or tokens.
        kind: how it is judged; see :mod:`clearhead.explain.roles.judging`.

    >>> Property("first word", lambda sentence: {query: [0] for query in range(1, 4)}).level
    'words'
    """

    name: str
    targets: Callable[[TokenisedSentence], Targets]
    level: Level = "words"
    kind: Kind = "content"

    def __post_init__(self) -> None:
        _check_property(self.name, "targets", self.targets, self.level, self.kind)

    def named(self, sentence: TokenisedSentence) -> Iterable[tuple[str, Targets]]:
        """Return the property's targets with its name."""
        return ((self.name, self.targets(sentence)),)


@dataclass(frozen=True)
class PropertyFamily:
    """Properties whose names depend on the text, such as relations; ``name`` is that of all.

    ``members`` is a function from a :class:`TokenisedSentence` to targets by name.
    """

    name: str
    members: Callable[[TokenisedSentence], Mapping[str, Targets]]
    level: Level = "words"
    kind: Kind = "content"

    def __post_init__(self) -> None:
        _check_property(self.name, "members", self.members, self.level, self.kind)

    def named(self, sentence: TokenisedSentence) -> Iterable[tuple[str, Targets]]:
        """Return the targets of every member that occurs in the sentence."""
        return self.members(sentence).items()


def _check_property(name: str, role: str, function: object, level: str, kind: str) -> None:
    if not text("name", name).strip():
        raise InputError("the name of a property must not be empty.")
    if not callable(function):
        raise InputError(f"{role} must be a function of a sentence; got {shown(function)}.")
    one_of("level", level, get_args(Level))
    one_of("kind", kind, get_args(Kind))


AnyProperty: TypeAlias = Property | PropertyFamily


def chosen_properties(
    wanted: Iterable[AnyProperty | str | Callable[[TokenisedSentence], Targets]] | None,
    known: Mapping[str, AnyProperty],
) -> tuple[AnyProperty, ...]:
    """Return the properties that the user chose: all built-in ones, some by name, or new ones."""
    if wanted is None:
        return tuple(known.values())
    if isinstance(wanted, str):
        wanted = [wanted]
    chosen = []
    for one in wanted:
        if isinstance(one, str):
            if one not in known:
                raise InputError(
                    f"there is no built-in property {one!r}.",
                    hint=f"there are: {', '.join(known)}; a new one is Property(name, function).",
                )
            chosen.append(known[one])
        elif isinstance(one, Property | PropertyFamily):
            chosen.append(one)
        elif callable(one):
            chosen.append(Property(getattr(one, "__name__", "property").replace("_", " "), one))
        else:
            raise InputError(
                "a property is a name, a Property or a function from a tokenised sentence to "
                f"targets; {type(one).__name__} came."
            )
    names = [one.name for one in chosen]
    double = {name for name in names if names.count(name) > 1}
    if double:
        raise InputError(
            f"each property has a name of its own; {', '.join(sorted(double))} came twice."
        )
    return tuple(chosen)

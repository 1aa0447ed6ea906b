"""Properties: for each query of a sentence, the positions that a head would look at if it had one.

A property is one function. It gets a :class:`TokenisedSentence` and gives, for every query that is
a case of it, the targets::

    def after_a_comma(sentence):
        commas = [i for i, unit in enumerate(sentence.units) if unit.text == ","]
        return {query: [comma for comma in commas if comma < query] for query in range(...)}

Positions count units (words), or tokens with ``level="tokens"``. Queries without a target are no
cases. What a model may not see is left out by the scoring: a property need not know of it. A
:class:`PropertyFamily` gives several properties by name, such as one for each relation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from clearhead.errors import InputError
from clearhead.explain.roles.tokenised import TokenisedSentence

Targets: TypeAlias = Mapping[int, Sequence[int]]
Level: TypeAlias = Literal["tokens", "words"]
# How it is judged: position: 90 % of the strongest keys (Voita et al. 2019); rest: first and
# special tokens, judged alike; content: above the baselines; relation: also above choosing at
# random among keys of the target's own kind.
Kind: TypeAlias = Literal["position", "rest", "content", "relation"]


@dataclass(frozen=True)
class Property:
    """One property of attention: its name and the function that knows the targets."""

    name: str
    targets: Callable[[TokenisedSentence], Targets]
    level: Level = "words"
    kind: Kind = "content"

    def named(self, sentence: TokenisedSentence) -> Iterable[tuple[str, Targets]]:
        """The property's targets under its name."""
        return ((self.name, self.targets(sentence)),)


@dataclass(frozen=True)
class PropertyFamily:
    """Properties whose names come with the text, such as relations; ``name`` is that of all."""

    name: str
    members: Callable[[TokenisedSentence], Mapping[str, Targets]]
    level: Level = "words"
    kind: Kind = "content"

    def named(self, sentence: TokenisedSentence) -> Iterable[tuple[str, Targets]]:
        """The targets of every member that occurs in the sentence."""
        return self.members(sentence).items()


AnyProperty: TypeAlias = Property | PropertyFamily


def chosen_properties(
    wanted: Iterable[AnyProperty | str | Callable[[TokenisedSentence], Targets]] | None,
    known: Mapping[str, AnyProperty],
) -> tuple[AnyProperty, ...]:
    """The properties that a user asked for: all built-in ones, some by name, or new ones."""
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

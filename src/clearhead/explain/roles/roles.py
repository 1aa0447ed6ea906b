"""Roles: what each head of a model does on a corpus, as plain data with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from clearhead.errors import InputError
from clearhead.explain.roles.built_in import BUILT_IN, FIRST, SPECIAL
from clearhead.explain.roles.corpus import CorpusLike, corpus_of
from clearhead.explain.roles.counting import Count, Progress
from clearhead.explain.roles.examples import Example, examples_of
from clearhead.explain.roles.intervention import Effect, effects_of
from clearhead.explain.roles.judging import Judgement, Role, Rules, judge
from clearhead.explain.roles.keeping import Keeper
from clearhead.explain.roles.properties import (
    AnyProperty,
    Kind,
    PropertyFamily,
    Targets,
    chosen_properties,
)
from clearhead.explain.roles.reader import Forward, Reader
from clearhead.explain.roles.reports import HeadEvidence, HeadReport, PropertyReport, Verdict
from clearhead.explain.roles.scores import CONFIRM, FIND, RESTING, Score, ScoreBook
from clearhead.explain.roles.sharing import added_up
from clearhead.explain.roles.tally import CountedLayer, Tally
from clearhead.explain.roles.tokenised import TokenisedSentence

INTERVENTIONS = 6  # heads that are switched off unless more is asked for
CROWD = 0.2  # of all heads: more of them with one role are no specialists


@dataclass(frozen=True, eq=False)
class Roles:
    """The roles of all heads, with everything that supports them."""

    model: str
    corpus: str
    tally: Tally
    rules: Rules
    asked: tuple[AnyProperty, ...]
    examples: dict[tuple[str, str], tuple[Example, ...]]
    effects: tuple[Effect, ...]

    @cached_property
    def scores(self) -> ScoreBook:
        """Every score, also of what was not named."""
        return ScoreBook(self.tally)

    @cached_property
    def judgement(self) -> Judgement:
        """The roles that the rules allow to name."""
        return judge(self.scores, self.rules)

    @property
    def title(self) -> str:
        """What was found, in one line."""
        found = [role for role in self.named if role.kind != "rest"]
        heads, names = ({getattr(role, part) for role in found} for part in ("head", "property"))
        roles = f"{len(names)} role{'s' * (len(names) != 1)}"
        what = f"{roles} in {len(heads)} of {len(self.heads)} heads" if names else "no role found"
        return f"{self.model} on {self.corpus}: {what}"

    @property
    def layers(self) -> list[CountedLayer]:
        """The layers whose heads were counted."""
        return self.tally.layers

    @property
    def causal(self) -> bool:
        """Whether every layer sees only what stands before."""
        return all(layer.causal for layer in self.layers)

    @property
    def named(self) -> tuple[Role, ...]:
        """Every role that was named, strongest first; those of resting heads last."""
        return self.judgement.roles

    @cached_property
    def heads(self) -> tuple[HeadReport, ...]:
        """Every head of every counted layer, in order."""
        found = []
        for place, layer in enumerate(self.layers):
            for head in range(layer.heads):
                name = f"{layer.name}H{head}"
                roles = tuple(role for role in self.named if role.head == name)
                found.append(
                    HeadReport(name, place, head, float(self.scores.resting[place, head]), roles)
                )
        return tuple(found)

    def head(self, name: str) -> HeadReport:
        """One head by its name, "L16H5"."""
        for one in self.heads:
            if one.name == name:
                return one
        raise InputError(
            f"{name}: no such head was counted; they are {self.heads[0].name} … "
            f"{self.heads[-1].name}."
        )

    def evidence(self, name: str, most: int = 5) -> HeadEvidence:
        """Everything about one head: roles, examples, effects, and its best scores."""
        report = self.head(name)
        scores = []
        for number in range(len(self.tally.book.entries)):
            at = (report.layer, report.head, number)
            if self.scores.cases(CONFIRM, *at) >= self.rules.least_cases:
                scores.append(self.scores.score(CONFIRM, *at))
        scores.sort(key=lambda score: (-score.lift, score.property_name))
        examples = {prop: shown for (head, prop), shown in self.examples.items() if head == name}
        effects = tuple(effect for effect in self.effects if effect.head == name)
        return HeadEvidence(report, examples, effects, tuple(scores[:most]))

    @cached_property
    def properties(self) -> tuple[PropertyReport, ...]:
        """Every property, also those that never occur."""
        entries = self.tally.book.entries
        numbers = self.tally.numbers["counts"] if self.layers else None
        found = []
        for number, entry in enumerate(entries):
            cases = 0 if numbers is None else int(numbers[:, 0, :, number].sum(axis=0).max())
            least = 0 if numbers is None else int(numbers[:, 0, :, number].min(axis=0).max())
            verdict: Verdict = "scored"
            if not cases:
                verdict = "cannot be seen"
            elif least < self.rules.least_cases:
                verdict = "too few cases"
            occurs = self.tally.occurs.get(entry.name, 0)
            found.append(PropertyReport(entry.name, entry.kind, occurs, cases, verdict))
        for one in self.asked:
            if not self._occurred(one):
                found.append(PropertyReport(one.name, one.kind, 0, 0, "never occurs"))
        return tuple(found)

    def best(self, name: str) -> Score | None:
        """The head that is best at a property on the half that finds, as it does on the other.

        None where there are too few cases.
        """
        number = self.tally.book.numbers.get(name)
        if number is None:
            return None
        tried = []
        for place, layer in enumerate(self.layers):
            for head in range(layer.heads):
                halves = [self.scores.cases(half, place, head, number) for half in (FIND, CONFIRM)]
                if min(halves) >= self.rules.least_cases:
                    tried.append((self.scores.score(FIND, place, head, number), place, head))
        if not tried:
            return None
        _, place, head = max(tried, key=lambda one: (one[0].accuracy, one[0].mass))
        return self.scores.score(CONFIRM, place, head, number)

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, as sentences."""
        return tuple(_notes(self))

    def kind_of(self, name: str) -> Kind:
        """How a property that occurred is judged."""
        return self.tally.book.entries[self.tally.book.numbers[name]].kind

    def _occurred(self, one: AnyProperty) -> bool:
        entries = self.tally.book.entries
        if isinstance(one, PropertyFamily):
            return any(_belongs(entry.name, one) for entry in entries)
        return one.name in self.tally.book.numbers


def _belongs(name: str, family: PropertyFamily) -> bool:
    marks = {"relations": "→ head", "parts of speech": "every ", "entities": "entity "}
    return marks.get(family.name, family.name) in name


def _notes(roles: Roles) -> list[str]:
    notes, totals = [], roles.tally.totals
    resting = sum(one.resting >= RESTING for one in roles.heads)
    if resting:
        notes.append(
            f"{resting} of {len(roles.heads)} heads rest: most of their strongest keys are the "
            "first or special tokens, which are left out when their other roles are scored."
        )
    for name, many in Counter(role.property for role in roles.named).most_common():
        if many > CROWD * len(roles.heads) and roles.kind_of(name) == "content":
            notes.append(
                f"{many} heads look at “{name}”: so many alike are rather a second resting place "
                "of this model than a role of each."
            )
    if roles.causal:
        notes.append(
            "This model sees only what stands before: every property is scored in the direction "
            "that it can see."
        )
    if totals.get("too long"):
        notes.append(f"{totals['too long']} sentences were left out: too long.")
    if totals.get("merged words"):
        notes.append(
            f"{totals['merged words']} words share a token with another and count as one with it."
        )
    notes.append(
        f"{roles.judgement.tried} pairs of head and property were tried; chance is ruled out at "
        f"{roles.rules.level:.0%} for all of them together."
    )
    return notes


def find_roles(
    model: Any,
    corpus: CorpusLike = None,
    *,
    properties: Iterable[AnyProperty | str | Callable[[TokenisedSentence], Targets]] | None = None,
    tokenizer: object = None,
    forward: Forward | None = None,
    layers: Any = None,
    spacy: Any = None,
    interventions: int | None = INTERVENTIONS,
    rules: Rules | None = None,
    batch_tokens: int = 1024,
    keep: str | Path | None = None,
    share: tuple[int, int] = (0, 1),
    progress: Callable[[str], Progress] | None = None,
) -> Roles:
    """What each head of a model does on a corpus, with evidence (``ch.roles``).

    Args:
        model: what ``load`` returns, or a torch model with its ``tokenizer`` (and ``forward``).
        corpus: a .conllu file, a .tsv of coreference, a text file, a text, or sentences; the
            built-in text unless given.
        properties: built-in ones by name, :class:`Property` objects, or functions; all built-in
            ones unless given.
        layers: only these, as ``watch`` takes them.
        spacy: a pipeline of spaCy, or its name, that annotates plain text.
        interventions: of how many properties the best head is switched off, to see what changes;
            None: of all.
        rules: thresholds other than the stated ones.
        batch_tokens: of one forward; the result does not depend on it.
        keep: a file for the counts, so that an interrupted run goes on from there. It stays, and
            the same corpus need not be counted again; given sentences are, as they may change.
        share: (this process, number of processes): see ``sharing.py``.
        progress: called with what begins ("counting", "switching heads off"), gives the function
            that is told how far it is.
    """
    asked = chosen_properties(properties, BUILT_IN)
    needed = [BUILT_IN[name] for name in (FIRST, SPECIAL)]
    used = (*asked, *(one for one in needed if one.name not in {two.name for two in asked}))
    reader = Reader(model, tokenizer, forward)
    text = corpus_of(corpus, spacy=spacy)
    count = Count(reader, used, layers, batch_tokens, share)
    listen = (lambda _: None) if progress is None else progress
    keeper = None if keep is None else Keeper(Path(keep), count, text)
    tally, done = (Tally(), 0) if keeper is None else keeper.load()
    module, training = reader.module, reader.module.training
    module.eval()
    try:
        read = done
        for read in count.windows(text, tally, done, listen("counting")):
            if keeper is not None:
                keeper.save(tally, read)
        if keeper is not None and read > done:
            keeper.save(tally, read, now=True)
        tally = added_up(tally)
        if not tally.layers:
            raise InputError(
                f"{text.name} holds no sentence that could be counted: of "
                f"{tally.totals.get('sentences', 0)} that came, {tally.totals.get('too short', 0)} "
                f"are too short and {tally.totals.get('too long', 0)} too long.",
                hint=f"sentences of 2 to {reader.longest} tokens are counted.",
            )
        found = Roles(reader.name, text.name, tally, rules or Rules(), asked, {}, ())
        if share[0] == 0:
            found = _with_evidence(found, reader, used, interventions, listen)
    finally:
        module.train(training)
    if keeper is not None and not text.key:
        keeper.remove()
    return found


def _with_evidence(
    roles: Roles,
    reader: Reader,
    properties: Sequence[AnyProperty],
    interventions: int | None,
    listen: Callable[[str], Progress | None],
) -> Roles:
    """Examples of every named role, and the effect of switching some of the heads off."""
    telling = [role for role in roles.named if role.kind != "rest"]
    examples = examples_of(telling, roles.tally, reader, properties)
    first: dict[str, Role] = {}  # the best head of each property, which may not be used twice
    for role in telling:
        if role.head not in {other.head for other in first.values()}:
            first.setdefault(role.property, role)
    chosen = list(first.values())[:interventions]
    effects: tuple[Effect, ...] = ()
    if chosen and interventions != 0:
        effects = effects_of(chosen, roles.tally, reader, properties, listen("switching heads off"))
    return Roles(
        roles.model, roles.corpus, roles.tally, roles.rules, roles.asked, examples, effects
    )

"""``find_roles``: the role of each head of a model on a corpus, as plain data with its evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from clearhead import arguments
from clearhead.errors import InputError
from clearhead.explain.roles.built_in_properties import BUILT_IN, FIRST, SPECIAL
from clearhead.explain.roles.corpus.sources import CorpusLike, corpus_of
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence
from clearhead.explain.roles.counting import Count, Progress
from clearhead.explain.roles.counts.count_cache import CountCache
from clearhead.explain.roles.counts.effect_cache import EffectCache
from clearhead.explain.roles.counts.tally import CountedLayer, Tally
from clearhead.explain.roles.door import check_roles
from clearhead.explain.roles.effect import Effect
from clearhead.explain.roles.examples import Example, examples_of
from clearhead.explain.roles.intervention import effects_of
from clearhead.explain.roles.judging import Judgement, Role, Rules, judge
from clearhead.explain.roles.processes import added_up
from clearhead.explain.roles.properties import (
    AnyProperty,
    Kind,
    PropertyFamily,
    Targets,
    chosen_properties,
)
from clearhead.explain.roles.reader import Forward, Reader
from clearhead.explain.roles.reports import HeadEvidence, HeadReport, PropertyReport, Verdict
from clearhead.explain.roles.scores import CONFIRM, FIND, SINK_HEAD, Score, ScoreTable

INTERVENTIONS = 6  # heads that are ablated by default
CROWD = 0.2  # of all heads: if more have the same role, they are no specialists


@dataclass(frozen=True, eq=False)
class Roles:
    """The roles of all heads of a model, with their evidence.

    ``named`` are the roles, ``heads`` and ``properties`` the reports, ``evidence("L16H5")`` is
    everything about one head, ``scores`` has all scores, also of pairs that have no role.
    """

    model: str
    corpus: str
    tally: Tally
    rules: Rules
    requested: tuple[AnyProperty, ...]  # the properties that the user chose
    examples: dict[tuple[str, str], tuple[Example, ...]]
    effects: tuple[Effect, ...]

    def __repr__(self) -> str:
        return f"Roles({self.title!r})"

    @cached_property
    def scores(self) -> ScoreTable:
        """Every score, also of pairs without a role."""
        return ScoreTable(self.tally)

    @cached_property
    def judgement(self) -> Judgement:
        """The roles that the rules allow to name."""
        return judge(self.scores, self.rules)

    @property
    def title(self) -> str:
        """The result in one line."""
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
        """True if every layer is causal."""
        return all(layer.causal for layer in self.layers)

    @property
    def named(self) -> tuple[Role, ...]:
        """Every role that was named, strongest first; attention sinks last."""
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
                    HeadReport(name, place, head, float(self.scores.sink_share[place, head]), roles)
                )
        return tuple(found)

    def head(self, name: str) -> HeadReport:
        """Return the report of one head by its name, "L16H5"."""
        arguments.text("name", name)
        for one in self.heads:
            if one.name == name:
                return one
        raise InputError(
            f"name {name}: no such head was counted; they are {self.heads[0].name} … "
            f"{self.heads[-1].name}."
        )

    def evidence(self, name: str, most: int = 5) -> HeadEvidence:
        """Return everything about one head: roles, examples, effects, and its best scores."""
        report, most = self.head(name), arguments.whole_number("most", most, least=0)
        scores = []
        for number in range(len(self.tally.index.entries)):
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
        entries = self.tally.index.entries
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
        for one in self.requested:
            if not self._occurred(one):
                found.append(PropertyReport(one.name, one.kind, 0, 0, "never occurs"))
        return tuple(found)

    def best(self, name: str) -> Score | None:
        """Return the confirming score of the head that is best at a property on the finding half.

        None if there are too few cases.
        """
        number = self.tally.index.numbers.get(arguments.text("name", name))
        if number is None:
            self._check_property(name)
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
        """Notes for the reader, as sentences."""
        return tuple(_notes(self))

    def kind_of(self, name: str) -> Kind:
        """Return the kind of a property that occurred: how it is judged."""
        number = self.tally.index.numbers.get(arguments.text("name", name))
        if number is None:
            self._check_property(name)
            raise InputError(f"the property of the name {name!r} never occurs in this corpus.")
        return self.tally.index.entries[number].kind

    def _check_property(self, name: str) -> None:
        known = {one.name for one in self.requested}
        if name not in known:
            raise InputError(
                f"no property of the name {name!r} was looked for.",
                hint=f"there are: {', '.join(sorted(known | set(self.tally.index.numbers)))}.",
            )

    def _occurred(self, one: AnyProperty) -> bool:
        entries = self.tally.index.entries
        if isinstance(one, PropertyFamily):
            return any(_belongs(entry.name, one) for entry in entries)
        return one.name in self.tally.index.numbers


def _belongs(name: str, family: PropertyFamily) -> bool:
    marks = {"relations": "→ head", "parts of speech": "every ", "entities": "entity "}
    return marks.get(family.name, family.name) in name


def _notes(roles: Roles) -> list[str]:
    notes, totals = [], roles.tally.totals
    sinks = sum(one.sink_share >= SINK_HEAD for one in roles.heads)
    if sinks:
        notes.append(
            f"{sinks} of {len(roles.heads)} heads attend mostly to attention sinks: the first or "
            "special tokens, which are left out when their other roles are scored."
        )
    for name, many in Counter(role.property for role in roles.named).most_common():
        if many > CROWD * len(roles.heads) and roles.kind_of(name) == "content":
            notes.append(
                f"{many} heads attend to “{name}”: so many alike are rather a second attention "
                "sink of this model than a role of each."
            )
    if roles.causal:
        notes.append(
            "This model is causal: every property is scored in the direction that it can attend to."
        )
    if totals.get("too long"):
        notes.append(f"{totals['too long']} sentences were left out: too long.")
    if totals.get("merged words"):
        notes.append(
            f"{totals['merged words']} words share a token with another and count as one with it."
        )
    notes.append(
        f"{roles.judgement.tried} pairs of head and property were tested; roles are significant at "
        f"{roles.rules.level:.0%} for all of them together (Holm)."
    )
    return notes


def find_roles(
    model: object,
    corpus: CorpusLike = None,
    *,
    properties: Iterable[AnyProperty | str | Callable[[TokenisedSentence], Targets]] | None = None,
    tokenizer: object = None,
    forward: Forward | None = None,
    layers: int | str | Iterable[int | str] | None = None,
    spacy: str | Any = None,
    interventions: int | None = INTERVENTIONS,
    rules: Rules | None = None,
    batch_tokens: int = 1024,
    keep: str | Path | None = None,
    share: tuple[int, int] = (0, 1),
    progress: Callable[[str], Progress] | None = None,
) -> Roles:
    """Find the role of each head of a model on a corpus, with evidence (``ch.roles``).

    Args:
        model: what ``load`` returns, or a torch model with its ``tokenizer`` (and ``forward``).
        corpus: a .conllu file, a .tsv of coreference, a text file, a text, or sentences; the
            built-in text unless given.
        properties: built-in ones by name, :class:`Property` objects, or functions; all built-in
            ones unless given.
        tokenizer: of a torch model: ours, or a fast one of transformers.
        forward: ``forward(ids, real)`` runs a torch model of unknown kind on a padded batch;
            ``real`` is True at real tokens, False at padding.
        layers: only these layers, as ``watch`` takes them; all unless given.
        spacy: a pipeline of spaCy, or its name, that annotates plain text.
        interventions: for how many properties the best head is ablated, to measure what changes;
            None: for all, 0: for none.
        rules: thresholds other than the default ones.
        batch_tokens: tokens of one forward; the result does not depend on it.
        keep: a file that caches the counts, so that an interrupted run continues from there. It
            stays, and the same corpus is not counted again. It is deleted if the corpus is an
            iterable of sentences, as these may change.
        share: (this process, number of processes): see ``processes.py``.
        progress: called with the name of each stage ("counting", "ablating heads"); returns the
            function that is called with the sentences (heads) done, and their number if known.

    Returns:
        The roles with their evidence. ``ch.roles`` returns the same as an object that shows itself.

    Raises:
        InputError: the corpus has no sentence that can be counted, the model cannot be run or
            watched, or a property is not valid.
        CheckpointError: the counts cannot be written to ``keep``.

    >>> from clearhead.explain.roles.corpus.built_in_text import made_sentences
    >>> from clearhead.explain.roles.planted import planted_model
    >>> sentences = list(made_sentences(60))
    >>> model = planted_model(sentences)  # a small model whose roles are known
    >>> found = find_roles(model, sentences, properties=["previous token"], interventions=0)
    >>> [(role.head, role.property) for role in found.named]
    [('L0H0', 'previous token')]
    """
    check_roles(locals())
    requested = chosen_properties(properties, BUILT_IN)
    needed = [BUILT_IN[name] for name in (FIRST, SPECIAL)]
    used = (*requested, *(one for one in needed if one.name not in {two.name for two in requested}))
    reader = Reader(model, tokenizer, forward)
    text = corpus_of(corpus, spacy=spacy)
    count = Count(reader, used, layers, batch_tokens, share)
    stage = (lambda _: None) if progress is None else progress
    cache = None if keep is None else CountCache(Path(keep), count, text)
    tally, done = (Tally(), 0) if cache is None else cache.load()
    module, training = reader.module, reader.module.training
    module.eval()
    try:
        read = done
        for read in count.windows(text, tally, done, stage("counting")):
            if cache is not None:
                cache.save(tally, read)
        if cache is not None and read > done:
            cache.save(tally, read, now=True)
        tally = added_up(tally)
        if not tally.layers:
            raise InputError(
                f"{text.name} holds no sentence that could be counted: of "
                f"{tally.totals.get('sentences', 0)} that came, {tally.totals.get('too short', 0)} "
                f"are too short and {tally.totals.get('too long', 0)} too long.",
                hint=f"sentences of 2 to {reader.longest} tokens are counted.",
            )
        found = Roles(reader.name, text.name, tally, rules or Rules(), requested, {}, ())
        if share[0] == 0:
            kept = None if cache is None else EffectCache(cache.path, cache.key, tally)
            found = _with_evidence(found, reader, used, interventions, stage, kept)
    finally:
        module.train(training)
    if cache is not None and not text.key:
        cache.remove()
    return found


def _with_evidence(
    roles: Roles,
    reader: Reader,
    properties: Sequence[AnyProperty],
    interventions: int | None,
    stage: Callable[[str], Progress | None],
    cache: EffectCache | None,
) -> Roles:
    """Add examples of every named role, and the effects of ablating some of the heads."""
    shown = [role for role in roles.named if role.kind != "rest"]
    examples = examples_of(shown, roles.tally, reader, properties)
    first: dict[str, Role] = {}  # the best head of each property, which may not be used twice
    for role in shown:
        if role.head not in {other.head for other in first.values()}:
            first.setdefault(role.property, role)
    chosen = list(first.values())[:interventions]
    effects: tuple[Effect, ...] = ()
    if chosen and interventions != 0:
        effects = effects_of(chosen, roles.tally, reader, properties, stage, cache)
    return Roles(
        roles.model, roles.corpus, roles.tally, roles.rules, roles.requested, examples, effects
    )

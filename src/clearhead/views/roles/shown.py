"""``ch.roles``: the role of each head, with evidence, as something that shows itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from torch import nn

from clearhead.checkpoints.load import load
from clearhead.explain.roles.corpus.sources import CorpusLike
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence
from clearhead.explain.roles.counting import Progress
from clearhead.explain.roles.counts.tally import CountedLayer, Tally
from clearhead.explain.roles.effect import Effect
from clearhead.explain.roles.examples import Example
from clearhead.explain.roles.judging import Judgement, Role, Rules
from clearhead.explain.roles.properties import AnyProperty, Kind, Targets
from clearhead.explain.roles.reader import Forward
from clearhead.explain.roles.reports import HeadEvidence, HeadReport, PropertyReport
from clearhead.explain.roles.roles import INTERVENTIONS, Roles, find_roles
from clearhead.explain.roles.scores import Score, ScoreTable
from clearhead.views import tables
from clearhead.views.formats import FORMATS
from clearhead.views.roles.html import roles_frame, roles_page
from clearhead.views.roles.svg import draw_roles
from clearhead.views.roles.tables import role_rows, roles_json
from clearhead.views.roles.terminal import evidence_parts, roles_parts
from clearhead.views.shown.base import Shown
from clearhead.views.svg import render as svg
from clearhead.views.terminal import render as terminal

# Entered here and not there, so that a look need not load what roles consist of.
terminal.RENDERERS |= {Roles: roles_parts, HeadEvidence: evidence_parts}
svg.RENDERERS[Roles] = draw_roles
tables.CSV[Roles] = role_rows


@runtime_checkable
class HasModel(Protocol):
    """A torch model as ``.model``, such as the result of ``ch.load``; it may have more."""

    @property
    def model(self) -> nn.Module:
        """The torch model."""
        ...


def roles(
    model: HasModel | nn.Module | str | Path,
    corpus: CorpusLike = None,
    *,
    properties: Iterable[AnyProperty | str | Callable[[TokenisedSentence], Targets]] | None = None,
    tokenizer: object = None,
    forward: Forward | None = None,
    layers: int | str | Iterable[int | str] | None = None,
    spacy: str | Callable[[str], Any] | None = None,
    interventions: int | None = INTERVENTIONS,
    rules: Rules | None = None,
    batch_tokens: int = 1024,
    keep: str | Path | None = None,
    share: tuple[int, int] = (0, 1),
    progress: Callable[[str], Progress] | None = None,
) -> ShownRoles:
    """Find the role of each head of a model on a corpus, with baselines, intervals and examples.

        >>> import clearhead as ch
        >>> found = ch.roles("dates", ["3rd of March 2021", "March 5, 1999"], interventions=0)
        >>> len(found.heads), found.tally.totals["sentences"]
        (4, 2)

    Args:
        model: a model of ``ch.load``, or the name or path of one; or a torch model with its
            ``tokenizer`` (and ``forward``).
        corpus: a .conllu file, a .tsv of coreference, a text file, a text, or sentences; the
            built-in text unless given.
        properties: built-in ones by name, ``Property`` objects, or functions; all built-in ones
            unless given.
        tokenizer: the tokenizer of a torch model.
        forward: a function that runs a torch model on (ids, real), both (batch, query).
        layers: only these layers, as ``ch.watch`` takes them.
        spacy: a pipeline of spaCy, or its name, that annotates plain text.
        interventions: the number of properties whose best head is ablated, to measure the change;
            None: all.
        rules: other thresholds than the stated ones.
        batch_tokens: tokens of one forward; the result does not depend on it.
        keep: a file for the counts: an interrupted run goes on from there, and the same corpus is
            not counted again.
        share: (this process, number of processes), for several processes.
        progress: called with the name of each stage; returns the function that is then called with
            (done, total).

    Returns:
        The roles, which show themselves. ``.save("roles.html")`` writes them (.html, .svg, .png,
        .csv, .json, .txt); ``.head("L16H5")`` is one head with its examples.

    Raises:
        InputError: the corpus holds no sentence that could be counted, or an option is not one of
            those above.
    """
    found = find_roles(
        load(model) if isinstance(model, str | Path) else model,
        corpus,
        properties=properties,
        tokenizer=tokenizer,
        forward=forward,
        layers=layers,
        spacy=spacy,
        interventions=interventions,
        rules=rules,
        batch_tokens=batch_tokens,
        keep=keep,
        share=share,
        progress=progress,
    )
    return ShownRoles(found)


class ShownRoles(Shown[Roles]):
    """The roles of a model's heads: the result of ``ch.roles``. Page and JSON are its own."""

    formats: ClassVar[Mapping[str, Callable[[Any], bytes]]] = {
        **FORMATS,
        "html": lambda roles: roles_page(roles).encode(),
        "json": lambda roles: roles_json(roles).encode(),
    }

    def head(self, name: str) -> ShownEvidence:
        """One head with its roles, examples and effects."""
        return self.evidence(name)

    def evidence(self, name: str, most: int = 5) -> ShownEvidence:
        """The same, with at most this many of its best scores."""
        return ShownEvidence(self.insight.evidence(name, most))

    def best(self, name: str) -> Score | None:
        """The score of the head that is best at a property; None where there are too few cases."""
        return self.insight.best(name)

    def kind_of(self, name: str) -> Kind:
        """The kind of a property that occurred: it says how the property is judged."""
        return self.insight.kind_of(name)

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.insight.model

    @property
    def corpus(self) -> str:
        """The name of the corpus."""
        return self.insight.corpus

    @property
    def tally(self) -> Tally:
        """The counts that every score is computed from."""
        return self.insight.tally

    @property
    def rules(self) -> Rules:
        """The thresholds that a role must pass."""
        return self.insight.rules

    @property
    def requested(self) -> tuple[AnyProperty, ...]:
        """The properties that were looked for."""
        return self.insight.requested

    @property
    def examples(self) -> dict[tuple[str, str], tuple[Example, ...]]:
        """Sentences for each (head, property)."""
        return self.insight.examples

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The changes when heads are ablated."""
        return self.insight.effects

    @property
    def scores(self) -> ScoreTable:
        """Every score, also of roles that were not named."""
        return self.insight.scores

    @property
    def judgement(self) -> Judgement:
        """The roles that the rules allow to name."""
        return self.insight.judgement

    @property
    def title(self) -> str:
        """The result in one line."""
        return self.insight.title

    @property
    def layers(self) -> list[CountedLayer]:
        """The layers whose heads were counted."""
        return self.insight.layers

    @property
    def causal(self) -> bool:
        """True if every layer sees only what stands before."""
        return self.insight.causal

    @property
    def named(self) -> tuple[Role, ...]:
        """Every role that was named, the strongest first."""
        return self.insight.named

    @property
    def heads(self) -> tuple[HeadReport, ...]:
        """Every head with its roles, in the order of the layers."""
        return self.insight.heads

    @property
    def properties(self) -> tuple[PropertyReport, ...]:
        """Every property, also those that never occur."""
        return self.insight.properties

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the result, as sentences."""
        return self.insight.notes

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_()
        return bundle | {"text/html": roles_frame(self.insight, bundle["text/html"])}


class ShownEvidence(Shown[HeadEvidence]):
    """One head with all evidence for its roles, in the terminal and as plain text."""

    @property
    def report(self) -> HeadReport:
        """The head and its roles."""
        return self.insight.report

    @property
    def examples(self) -> dict[str, tuple[Example, ...]]:
        """Sentences for each property."""
        return self.insight.examples

    @property
    def effects(self) -> tuple[Effect, ...]:
        """The changes when the head is ablated."""
        return self.insight.effects

    @property
    def best(self) -> tuple[Score, ...]:
        """Its best scores, also of roles that were not named."""
        return self.insight.best

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": str(self)}

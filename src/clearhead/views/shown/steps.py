"""The step table of one query, as something that shows itself."""

from __future__ import annotations

from clearhead.explain.head_outputs import HeadOutputs
from clearhead.explain.step_table import Queries, Sink, StepRow, StepTable, Vector
from clearhead.trace.proof import LayerProof
from clearhead.views.shown.base import Shown


class ShownSteps(Shown[StepTable]):
    """Every step of one query in one head: q, k, score, softmax, softmax·v, sum."""

    @property
    def title(self) -> str:
        """The heading of the table."""
        return self.insight.title

    @property
    def word(self) -> str:
        """The word of the query."""
        return self.insight.word

    @property
    def query(self) -> Vector:
        """The query vector q."""
        return self.insight.query

    @property
    def rows(self) -> tuple[StepRow, ...]:
        """A row for each key: k, v, score, softmax, softmax·v."""
        return self.insight.rows

    @property
    def scale(self) -> float:
        """The factor of the scores, 1/√key_dim unless the model has another."""
        return self.insight.scale

    @property
    def output(self) -> Vector:
        """The weighted sum of the values; empty where values were not kept."""
        return self.insight.output

    @property
    def head(self) -> str:
        """The name of the head, "L16H5"; "" in a worked example."""
        return self.insight.head

    @property
    def softcap(self) -> float | None:
        """The cap of the scores; None: the model has none."""
        return self.insight.softcap

    @property
    def sink(self) -> Sink | None:
        """The learned attention sink; None: the model has none."""
        return self.insight.sink

    @property
    def outputs(self) -> HeadOutputs | None:
        """The outputs of all heads of the layer, through W_O to Z."""
        return self.insight.outputs

    @property
    def proof(self) -> LayerProof | None:
        """The proof that the model computed these numbers."""
        return self.insight.proof

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the numbers, as sentences."""
        return self.insight.notes

    @property
    def scale_name(self) -> str:
        """The heading of the scaled scores, such as "score/8"."""
        return self.insight.scale_name

    @property
    def has_bias(self) -> bool:
        """True if something is added to the scores."""
        return self.insight.has_bias

    @property
    def model(self) -> str:
        """The name of the model; "" in a worked example."""
        return self.insight.model

    @property
    def queries(self) -> Queries | None:
        """A function that returns the tables of every query; None for a long text."""
        return self.insight.queries

"""``make_why``: run a model on a text and take its prediction apart into an exact sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from torch import Tensor

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.marks import marks_of
from clearhead.explain.pictures import Mark
from clearhead.explain.why.effects import Progress, effects_of, fits
from clearhead.explain.why.parts import (
    HeadPart,
    HeadSources,
    LayerPart,
    SourcePart,
    Why,
    WhyProof,
    sink_weight,
)
from clearhead.explain.why.prediction_run import PredictionRun, Text, run_for
from clearhead.explain.why.splitting import Split, split_stream
from clearhead.explain.why.sublayers import Captured
from clearhead.explain.why.target import (
    head_direction,
    predicted,
    sampled_logits,
    softcap_of,
    token_id,
)


def make_why(
    loaded: Loaded,
    text: Text,
    *,
    token: int | str | None = None,
    instead: int | str | None = None,
    position: int | str | None = None,
    source: Text | None = None,
    effects: bool | None = None,
    progress: Progress | None = None,
) -> Why:
    """Explain a prediction of the model: see :func:`clearhead.why`."""
    given = _given(loaded, token, instead)
    run = run_for(loaded, text, position=position, source=source)
    chosen, other = _tokens(loaded, run.logits, *given)
    why = explain(run, chosen, other)
    if effects is False or (effects is None and not fits(run)):
        return why
    return replace(why, effects=effects_of(run, why, progress))


def explain(run: PredictionRun, token: int, instead: int | None) -> Why:
    """Take the prediction of a run apart."""
    loaded, captured = run.loaded, run.captured
    state = captured.final[0]
    direction = head_direction(loaded, state, token, instead)
    if captured.stack.norm is not None:
        direction = direction.before_norm(captured.stack.norm, captured.stream[0], "final norm")
    split = split_stream(captured, 0, captured.sublayers, direction, run.id)
    named = predicted(loaded, run.logits, token)
    other = None if instead is None else predicted(loaded, run.logits, instead)
    columns = marks_of(run.passage, len(run.passage), words=True)
    source_columns = () if run.source is None else marks_of(run.source, len(run.source), words=True)
    own, source = _Read("text", columns), _Read("source", source_columns)
    heads = _head_parts(split, own, source)
    return Why(
        text=run.passage.text,
        source_text=None if run.source is None else run.source.text,
        model=loaded.name,
        position=run.position,
        mark=next(mark for mark in columns if run.position in mark.tokens),
        token=named,
        instead=other,
        total=split.total,
        softcap=softcap_of(loaded),
        columns=columns,
        source_columns=source_columns,
        heads=heads,
        sources=_summed_sources(own, source),
        feed_forwards=tuple(split.feed_forwards.items()),
        embedding=tuple(split.embedding.items()),
        biases=tuple(sorted(split.biases.items(), key=lambda one: -abs(one[1]))),
        layers=_layers(split),
        proof=_proof(split, run, token, instead),
        fills=loaded.config.head == "masked",
        notes=(*_changes(run.captured), *_notes(loaded, split, _sink(heads, own, source))),
    )


class _Read:
    """A text that heads read: its words, and what all heads together took from each."""

    def __init__(self, text: str, marks: tuple[Mark, ...]) -> None:
        self.text, self.marks = text, marks
        self.sums = np.zeros(len(marks))
        self.reached = np.zeros(len(marks), dtype=bool)
        places = [place for mark in marks for place in mark.tokens]
        columns = [column for column, mark in enumerate(marks) for _ in mark.tokens]
        self._owners = np.zeros(len(places), dtype=np.int64)
        self._owners[places] = columns

    def by_word(self, rows: Float[np.ndarray, "head key"]) -> Float[np.ndarray, "head column"]:
        """Numbers of tokens, summed up for each word."""
        columns = len(self.marks)
        return np.stack([np.bincount(self._owners, weights=row, minlength=columns) for row in rows])

    def sources(self) -> list[SourcePart]:
        return [
            SourcePart(self.marks[column], column, self.text, float(self.sums[column]), None)
            for column in self.reached.nonzero()[0].tolist()
        ]


def _head_parts(split: Split, own: _Read, source: _Read) -> tuple[HeadPart, ...]:
    """The part of each head; what it took from each word is added to the text that it read."""
    parts = []
    for name, matrix in split.heads.items():
        read = source if name.startswith("C") else own
        values, weights = read.by_word(matrix), read.by_word(split.weights[name])
        read.sums += values.sum(axis=0)
        read.reached |= weights.any(axis=0)
        for head, (row, spread) in enumerate(zip(values, weights, strict=True)):
            sources = HeadSources(read.marks, read.text, row, spread)
            replaced = split.replaced[name].get(head)
            value = float(row.sum()) + (replaced or 0.0)
            parts.append(HeadPart(f"{name}H{head}", value, sources, replaced))
    return tuple(sorted(parts, key=lambda part: -abs(part.value)))


def _summed_sources(*read: _Read) -> tuple[SourcePart, ...]:
    """Each word's part, summed over all heads."""
    found = [part for text in read for part in text.sources()]
    return tuple(sorted(found, key=lambda one: -abs(one.value)))


def _layers(split: Split) -> tuple[LayerPart, ...]:
    """Layer by layer, how the sum grows."""
    sum_so_far = sum(split.embedding.values()) + sum(split.biases.values())
    layers = []
    for name, feed_forward in split.feed_forwards.items():
        number = name[1:-1]
        heads = sum(
            float(split.heads[layer].sum()) + sum(split.replaced[layer].values())
            for layer in (f"L{number}", f"C{number}")
            if layer in split.heads
        )
        sum_so_far += heads + feed_forward
        layers.append(LayerPart(f"L{number}", heads, feed_forward, sum_so_far))
    return tuple(layers)


def _proof(split: Split, run: PredictionRun, token: int, instead: int | None) -> WhyProof:
    raw = run.uncapped
    measured = float(raw[token]) - (0.0 if instead is None else float(raw[instead]))
    logits = [abs(float(raw[id])) for id in (token, instead) if id is not None]
    # A logit near 0 is a sum of large terms: it is compared with the usual size of the logits.
    usual = float(raw.double().square().mean().sqrt())
    error = abs(split.total - measured) / max(*logits, usual, 1e-30)
    return WhyProof(split.total, measured, error, split.attention_error)


def _given(
    loaded: Loaded, token: int | str | None, instead: int | str | None
) -> tuple[int | None, int | None]:
    """The ids of the tokens that are named, refused before the model runs."""
    chosen = None if token is None else token_id(loaded, token)
    other = None if instead is None else token_id(loaded, instead, "instead")
    if other is not None and other == chosen:
        raise _same()
    return chosen, other


def _same() -> InputError:
    return InputError(
        "token and instead are the same token, so that their difference is 0.",
        hint="leave instead out to explain the logit itself.",
    )


def _tokens(
    loaded: Loaded, logits: Float[Tensor, " vocab"], token: int | None, instead: int | None
) -> tuple[int, int | None]:
    """The tokens that are compared: without any, the likeliest and the second."""
    sampled = sampled_logits(loaded, logits)
    best = sampled.topk(min(2, len(sampled))).indices.tolist()
    if token is None and instead is None:
        return best[0], best[1] if len(best) > 1 else None
    chosen = best[0] if token is None else token
    if instead == chosen:
        raise _same()
    return chosen, instead


def _changes(captured: Captured) -> Iterator[str]:
    """What interventions have changed in this run."""
    named = dict.fromkeys(f"{one.name} ({one.what})" for one in captured.changes())
    if named:
        yield (
            f"The model is changed while it runs: {', '.join(named)}. What is put in the place of "
            "a head's output comes from no word."
        )


def _sink(heads: Sequence[HeadPart], own: _Read, source: _Read) -> float | None:
    return None if source.marks else sink_weight(heads, len(own.marks))


def _notes(loaded: Loaded, split: Split, sink: float | None) -> tuple[str, ...]:
    notes = [
        "Each part is direct: what it wrote into the residual stream, read by the output. What it "
        "does through later layers is not in it.",
        "Norms are linear once their scale is known; the scales are those of this run.",
    ]
    if sink is not None:
        notes.append(
            f"The first word is an attention sink here: on average the heads give it {sink:.2f} of "
            "their weight. Often that is weight which they do not need elsewhere."
        )
    if loaded.config.output_softcap is not None:
        cap = loaded.config.output_softcap
        notes.append(f"The logits are capped at ±{cap:g} after the sum: {cap:g}·tanh(sum/{cap:g}).")
    if loaded.config.head == "masked":
        notes.append("The gates of the output head's activation are those of this run, too.")
    if any(_with_sinks(split, name) for name in split.weights):
        notes.append("Weights of heads with a sink add up to less than 1.")
    return tuple(notes)


def _with_sinks(split: Split, name: str) -> bool:
    """True if the weights of some head of a layer add up to less than 1."""
    whole = split.weights[name].sum(axis=1)
    return any(
        total < 0.999 and head not in split.replaced[name] for head, total in enumerate(whole)
    )

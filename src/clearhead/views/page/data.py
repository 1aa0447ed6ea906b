"""The data of an interactive page, from a look or one head: words, weights, vectors.

All weights of a short text; of a longer one the strongest of each row, cut so that the file stays
within a budget. The page says how much was cut, for the whole and for each row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from clearhead.explain.choice import ALL
from clearhead.explain.generated import GeneratedToken
from clearhead.explain.look import Look
from clearhead.explain.pictures import HEADLINE, Aids, HeadPicture, Mark
from clearhead.explain.predictions import has_predictions
from clearhead.views.numbers import measure_text
from clearhead.views.page.axes import Axes, token_texts
from clearhead.views.page.blocks import Blocks, row_bytes
from clearhead.views.page.groups import Group, Layer, group_weights, groups_of, union_band
from clearhead.views.page.predictions import add_predictions
from clearhead.views.page.strongest import (
    MOST,
    UNITS,
    Strongest,
    fitting_cut,
    in_units,
    strongest,
)
from clearhead.views.page.vectors import add_vectors

BUDGET = 12_000_000  # characters of all rows of weights
CHARACTERS = 3.0  # of base64 for each weight at most (SmolLM2: 1.8 at 64 tokens, 2.1 at 512)
FRAMED = 8  # most salient heads, with a frame in the gallery
LONG = 36  # words from which on a picture of one head is a map to zoom into
POOLED = ("max", "sum")  # a mean is a sum, divided by the number of heads
POOLS = {"L": "", "E": " of the encoder", "C": " between the texts"}
AXIS_LABELS = {"L": ("Text", "Text"), "E": ("Source", "Source"), "C": ("Written", "Source")}
WITHOUT_VECTORS = (
    "q, k and v of this head are not in this file: it would grow too large, or the layer has a "
    "bias or mask that the page does not compute."
)


@dataclass
class PageData:
    """The data of one view: ``meta`` becomes JSON, ``blocks`` base64."""

    meta: dict[str, Any]
    blocks: Blocks = field(default_factory=Blocks)


def page_of_look(
    look: Look,
    *,
    budget: int = BUDGET,
    blocks: Blocks | None = None,
    predictions: Callable[[Blocks, Look], dict[str, Any] | None] = add_predictions,
    proved: bool = True,
    progress: Callable[[int, int], None] = lambda _done, _all: None,
) -> PageData:
    """The data of a whole look: every layer and head that was seen.

    A live page has its blocks and predictions made in its own way, and asks for the proof later;
    ``progress`` is called between two layers, and may raise.
    """
    groups = groups_of(look)
    rows: dict[str, Strongest] = {}
    for group in groups:
        rows |= group_weights(group, look, progress)
    cut = fitting_cut(list(rows.values()), round(budget / CHARACTERS))
    rows = {name: part.cut(cut) for name, part in rows.items()}
    data = PageData({}, Blocks() if blocks is None else blocks)
    data.blocks.add_all({name: partial(row_bytes, part) for name, part in rows.items()})
    axes, bands = Axes(), _Bands()
    layers = [layer for group in groups for layer in group.layers]
    data.meta = {
        "title": "where each word looks",
        "model": model_name(look.name),
        "headline": HEADLINE,
        "layers": [
            _layer_meta(layer, number, look, axes, bands)
            | {"block": layer.name, "pools": {pool: f"{layer.name}-{pool}" for pool in POOLED}}
            for number, group in enumerate(groups)
            for layer in group.layers
        ],
        "groups": [_group_meta(group, look, axes, bands, data.blocks, groups) for group in groups],
        "chosen": {"head": _chosen(look), "word": look.chosen_word},
        "why": _sentence(look.why),
        "proof": proof_meta(look) if proved else None,
        "vectors": add_vectors(data.blocks, [layer.view for layer in layers], _chosen(look)),
        "without_vectors": WITHOUT_VECTORS,
        "gallery": _gallery(look, groups[0], data.blocks),
        "predictions": predictions(data.blocks, look),
    } | _written_meta(look, axes)  # fmt: skip
    _finish(data.meta, axes, bands, look.aids, _cut_meta(rows, cut), look.notes)
    return data


def page_of_picture(picture: HeadPicture) -> PageData:
    """The data of a single head's picture."""
    data = PageData({})
    axes, bands = Axes(), _Bands()
    weights = torch.from_numpy(np.ascontiguousarray(picture.weights))
    mass = in_units(torch.from_numpy(picture.hidden_mass)).clip(max=65535).astype(np.uint16)
    rows = replace(strongest(weights, (), most=len(picture.columns)), hidden=mass)
    if picture.pooled == "max":  # of the largest of many heads nothing adds up
        rows = replace(rows, totals=np.zeros(len(picture.rows)))
    low = picture.visible.argmax(axis=1)
    high = picture.visible.shape[1] - picture.visible[:, ::-1].argmax(axis=1)
    counts = picture.visible.sum(axis=1)
    high = np.where(counts > 0, high, low)
    is_band = bool((high - low == counts).all())
    band = {"low": low.tolist(), "high": high.tolist()} if is_band else None
    layer = {
        "name": picture.head, "heads": [picture.head], "kind": picture.kind,
        "pooled": picture.pooled, "cells": picture.per_cell, "whole": len(picture.rows) > LONG,
        "rows": axes.number(picture.rows, "Text", _text_of(picture.rows)),
        "columns": axes.number(picture.columns, "Source", _text_of(picture.columns)),
        "hidden": list(picture.hidden), "band": bands.number(band), "scale": 1.0, "softcap": None,
        "block": data.blocks.add("rows", row_bytes(rows)),
    }  # fmt: skip
    strong = np.where(np.isin(np.arange(len(picture.columns)), picture.hidden), 0, picture.weights)
    data.meta = {
        "title": "one head", "model": model_name(picture.model), "headline": HEADLINE,
        "layers": [layer], "groups": [],
        "chosen": {"head": picture.head, "word": int(strong.max(axis=1).argmax())},
        "why": "", "proof": None, "vectors": {}, "gallery": None, "generated": [],
        "written_from": None, "writing": None, "predictions": None,
        "without_vectors": "This file holds the weights of one head.",
    }  # fmt: skip
    _finish(data.meta, axes, bands, picture.aids, _cut_meta({"": rows}, 1), picture.notes)
    return data


def proof_meta(look: Look) -> dict[str, Any]:
    """The verdict of the proof, as the page shows it."""
    return {"exact": look.proof.exact, "text": str(look.proof)}


def model_name(name: str) -> str:
    """The name of a model; of a path its last part."""
    return name.rstrip("/").rpartition("/")[2] if name.startswith((".", "/")) else name


class _Bands:
    """The different masks of a page, each once, as runs of visible columns."""

    def __init__(self) -> None:
        self.listed: list[dict[str, list[int]]] = []

    def number(self, band: dict[str, list[int]] | None) -> int | None:
        if band is None:
            return None
        if band not in self.listed:
            self.listed.append(band)
        return self.listed.index(band)


def _layer_meta(layer: Layer, group: int, look: Look, axes: Axes, bands: _Bands) -> dict[str, Any]:
    facts = layer.view.record.facts
    return {
        "name": layer.name,
        "heads": layer.heads,
        "kind": facts.kind,
        "causal": facts.causal,
        "group": group,
        "scale": facts.scale,
        "softcap": facts.softcap,
        "hidden": list(layer.hidden),
        "band": bands.number(layer.band),
    } | _axis_numbers(layer, look, axes)


def _axis_numbers(layer: Layer, look: Look, axes: Axes) -> dict[str, Any]:
    letter = layer.name[0]
    row_label, column_label = AXIS_LABELS.get(letter, AXIS_LABELS["L"])
    view = layer.view
    source = (look.source_text or "") if letter in "CE" else look.text
    columns = axes.number(
        layer.columns,
        column_label,
        source,
        partial(token_texts, view.columns.passage, view.columns.length),
    )
    rows = axes.number(layer.rows, row_label, source if letter == "E" else look.text)
    return {"rows": rows, "columns": columns, "predicts": _predicts(letter, look)}


def _predicts(letter: str, look: Look) -> str | None:
    """What the distribution of a row is of: the next token, the token at its place, or its own.

    A row of cross-attention has the name of the token that its query wrote.
    """
    if not has_predictions(look) or letter == "E":
        return None
    if letter == "C":
        return "written"
    assert look.loaded is not None
    return "place" if look.loaded.config.kind == "encoder" else "next"


def _group_meta(
    group: Group, look: Look, axes: Axes, bands: _Bands, blocks: Blocks, groups: list[Group]
) -> dict[str, Any]:
    first, number = group.layers[0], groups.index(group)
    assert group.largest is not None and group.total is not None
    suffix = POOLS.get(group.letter, "") if len(groups) > 1 else ""
    return {
        "name": f"all {len(group.heads)} heads{suffix}",
        "heads": group.heads,
        "count": len(group.heads),
        "kind": first.view.record.facts.kind,
        "hidden": list(first.hidden),
        "band": bands.number(union_band(group)),
        "pools": {
            "max": blocks.add(f"all-{number}-max", row_bytes(group.largest)),
            "sum": blocks.add(f"all-{number}-sum", row_bytes(group.total)),
        },
    } | _axis_numbers(first, look, axes)


def _chosen(look: Look) -> str:
    """The chosen head or layer; "" where all heads together were chosen."""
    return "" if look.chosen_head == ALL else look.chosen_head


def _gallery(look: Look, group: Group, blocks: Blocks) -> dict[str, Any]:
    """Small maps of the group that is shown, each brightened to its own strongest cell."""
    maps = torch.cat([group.maps[layer.name] for layer in group.layers])
    largest = maps.amax(dim=(1, 2), keepdim=True).clamp(min=1e-9)
    bright = (maps / largest).sqrt().mul(255).round()
    blocks.add("gallery", bright.to(torch.uint8).numpy().tobytes())
    names, saliences = look.saliences()
    scores = [
        (score, name)
        for layer, row in zip(names, saliences, strict=True)
        for name, score in zip(layer, row, strict=True)
    ]
    most = min(FRAMED, 1 + len(scores) // 8)
    salience = [name for score, name in sorted(scores, reverse=True)[:most] if score > 0]
    word = look.rows[look.chosen_word].text
    return {
        "rows": maps.shape[1],
        "columns": maps.shape[2],
        "names": [layer.heads for layer in group.layers],
        "salience": salience,
        "remark": "One small map for each head, a row for each layer; click one to look at it. "
        f"The heads with a frame are the most salient for “{word}”. Each map has its own colour "
        "scale.",
    }


def _written_meta(look: Look, axes: Axes) -> dict[str, Any]:
    """The generated text; where it begins, if it follows a text; the axis of its queries."""
    if not look.generated:
        return {"generated": [], "written_from": None, "writing": None}
    group = look.output_group
    rows = {token: row for row, mark in enumerate(group.rows) for token in mark.tokens}
    return {
        "generated": [_generated(one, rows[one.position - 1]) for one in look.generated],
        "written_from": look.generated[0].position if group.kind == "self" else None,
        "writing": axes.number(group.rows, "Text", look.text),
    }


def _generated(written: GeneratedToken, row: int) -> dict[str, Any]:
    """One written token, the row of the query that wrote it, and what that looked at."""
    return {
        "text": written.text,
        "row": row,
        "probability": written.probability,
        "sources": [
            {"word": source.mark.text, "weight": source.weight, "head": source.head}
            for source in written.sources
        ],
    }


def _cut_meta(rows: dict[str, Strongest], cut: int) -> dict[str, Any]:
    heads = [part for part in rows.values() if part.heads is None and part.exact is None]
    left = np.concatenate([part.left_out for part in heads])
    return {
        "units": cut,
        "mean": round(float(left.mean()), 4) if left.size else 0.0,
        "most": round(float(left.max()), 4) if left.size else 0.0,
    }


def _finish(
    meta: dict[str, Any],
    axes: Axes,
    bands: _Bands,
    aids: Aids,
    cut: dict[str, Any],
    notes: tuple[str, ...],
) -> None:
    places = [*meta["layers"], *meta["groups"]]
    hide = aids.hide if aids.hide != "nothing" else Aids().hide
    meta |= {
        "axes": axes.listed,
        "bands": bands.listed,
        "cut": cut,
        "notes": [note for note in (*notes, _cut_note(cut)) if note and note != HEADLINE],
        "aids": {"hide": aids.hide, "colour": aids.colour, "pool": aids.pool},
        "measure": measure_text(aids.measure),
        "can_hide": any(place["hidden"] for place in places),
        "hide_label": "Hide first and special tokens"
        if hide == "first and special"
        else "Hide special tokens",
    }


def _cut_note(cut: dict[str, Any]) -> str:
    if cut["most"] < 0.005:
        return ""
    return (
        f"This file holds the {MOST} strongest weights of each row, from {cut['units'] / UNITS:g} "
        f"on; on average {cut['mean']:.2f} of a row is left out, at most {cut['most']:.2f}."
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "." * (not text.endswith(".")) if text else ""


def _text_of(marks: tuple[Mark, ...]) -> str:
    """The text as far as marks have it: their words at their places, spaces between."""
    length = max((mark.end for mark in marks), default=0)
    text = [" "] * length
    for mark in marks:
        text[mark.start : mark.end] = mark.text[: mark.end - mark.start].ljust(
            mark.end - mark.start
        )
    return "".join(text)

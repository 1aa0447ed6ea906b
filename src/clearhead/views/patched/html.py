"""A patch map as one self-contained HTML file: tables whose cells say their numbers. No script."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from clearhead.explain.patched.patch_map import PatchMap
from clearhead.views.escape import markup_text
from clearhead.views.page.files import style
from clearhead.views.page.static import header, script
from clearhead.views.patched.text import (
    HEADS,
    TITLES,
    answers,
    headline,
    proof_text,
    shown_columns,
    summary,
)
from clearhead.views.why.html import colour_class, in_frame
from clearhead.views.why.text import signed


def patch_page(found: PatchMap, *, framed: bool = False) -> str:
    """The whole file; in the frame of a notebook it has no script."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>clearhead – {markup_text(headline(found))}</title>"
        f"<style>{style('why.css')}</style>"
        f'</head><body class="why-page" data-static>\n{_body(found)}\n'
        f"{'' if framed else script()}</body></html>\n"
    )


def patch_frame(found: PatchMap, still: str) -> str:
    """The page in a frame of its own, for a notebook; ``still`` where frames are lost."""
    return in_frame(patch_page(found, framed=True), still, "clearhead: patch map")


def _body(found: PatchMap) -> str:
    columns = shown_columns(found)
    labels = [found.label(column) for column in columns]
    maps = "".join(
        _map(found, title, labels, found.of(part)[:, columns].T, 1.0)
        for part, title in TITLES.items()
    )
    names = [f"H{head}" for head in range(found.heads.shape[1])]
    largest = abs(found.strongest[0].share)
    title = f"Heads: each alone, at all words; the strongest is {largest:.2f}"
    heads = _map(found, title, names, found.heads.T, largest)
    notes = "".join(f"<li>{markup_text(note)}</li>" for note in (proof_text(found), *found.notes))
    return (
        f'<main class="why">{header("patching", found.model)}'
        f"<h1>{markup_text(headline(found))}</h1>{_texts(found)}"
        f"<p>{markup_text(summary(found))}</p>"
        '<p class="quiet">Layers across. Blue brings the other text\'s answer (1 is all of it), '
        "orange takes it further away. A cell says its number under the pointer.</p>"
        f"{maps}{heads}{_strongest(found)}<footer><ul>{notes}</ul></footer></main>"
    )


def _texts(found: PatchMap) -> str:
    """Both texts, with the words that differ marked."""
    lines = []
    words = ([mark.text for mark in found.columns], found.others)
    for own, said in zip(words, answers(found), strict=True):
        marked = " ".join(
            f'<span class="word{" for-1" if column in found.changed else ""}">'
            f"{markup_text(word)}</span>"
            for column, word in enumerate(own)
        )
        lines.append(f'<p dir="auto">{marked}</p><p class="quiet">→ {markup_text(said)}</p>')
    return "".join(lines)


def _map(
    found: PatchMap,
    title: str,
    labels: Sequence[str],
    rows: Float[np.ndarray, "row layer"],
    largest: float,
) -> str:
    heading = "".join(f'<th scope="col">{layer[1:]}</th>' for layer in found.layers)
    lines = [f'<tr><th class="name"><span class="unseen">layer</span></th>{heading}</tr>']
    for name, row in zip(labels, rows, strict=True):
        cells = "".join(
            _cell(f"{layer} {name}" if largest == 1.0 else f"{layer}{name}", share, largest)
            for layer, share in zip(found.layers, row.tolist(), strict=True)
        )
        lines.append(f'<tr><th scope="row" class="name">{markup_text(name)}</th>{cells}</tr>')
    return (
        f"<section><h2>{markup_text(title)}</h2>"
        f'<div class="scroll" tabindex="0" role="group" aria-label="{markup_text(title)}">'
        f'<table class="map">{"".join(lines)}</table></div></section>'
    )


def _cell(name: str, share: float, largest: float) -> str:
    label = markup_text(f"{name}: {signed(share).strip()}")
    sign = "·" if abs(share) < 0.05 * largest else "+" if share > 0 else "−"
    return f'<td class="{colour_class(share, largest)}" title="{label}">{sign}</td>'


def _strongest(found: PatchMap) -> str:
    largest = max(1.0, abs(found.strongest[0].share))
    rows = "".join(
        f'<tr><th scope="row">{head.name}</th><td class="bar">'
        f'<meter class="{"for" if head.share > 0 else "against"}" min="0" max="1" '
        f'value="{abs(head.share) / largest:.4f}">{signed(head.share)}</meter></td>'
        f'<td class="number">{signed(head.share)}</td></tr>'
        for head in found.strongest[:HEADS]
    )
    return f'<section><h2>The strongest heads</h2><table class="parts">{rows}</table></section>'

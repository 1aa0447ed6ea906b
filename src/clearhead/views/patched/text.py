"""Words and numbers of a patch map, the same in every renderer."""

from __future__ import annotations

from clearhead.explain.patched.patch_map import PatchMap, WordPart
from clearhead.views.why.text import percent, quoted, signed

HEADS = 8  # that are listed
WORDS = 24  # rows of a map
TITLES: dict[WordPart, str] = {
    "state": "States: the residual stream behind each layer",
    "attention": "Attention: what all heads of a layer put out",
    "feed-forward": "Feed-forward layers: what they put out",
}


def headline(found: PatchMap) -> str:
    """The question."""
    return f"What makes it {quoted(found.token)} here and {quoted(found.instead)} there?"


def answers(found: PatchMap) -> list[str]:
    """What each of the two texts predicts, in a line each."""
    sides = ((found.token, found.instead), (found.donor_token, found.donor_instead))
    return [
        f"{quoted(token)} {percent(token.probability)}, "
        f"{quoted(instead)} {percent(instead.probability)}: difference of the logits "
        f"{signed(token.logit - instead.logit).strip()}"
        for token, instead in sides
    ]


def summary(found: PatchMap) -> str:
    """The answer in sentences: where it stands layer by layer, and the head that carries most."""
    parts = [
        f"in “{found.label(column)}” {_span(found, first, last)}"
        for column, first, last in found.carriers()
        if last > first or float(found.states[first, column]) >= 0.5
    ]
    said = f"The difference stands {', then '.join(parts[:4])}"
    said += "." if len(parts) <= 4 else ", then elsewhere."
    best = next((one for one in found.strongest if one.share > 0), None)
    if best is None:
        return f"{said} No single head carries the answer of the other text."
    carries = (
        f"{best.name} carries most of it"
        if best.share >= 0.5
        else f"No single head carries most of it; the largest share has {best.name}"
    )
    return (
        f"{said} {carries}: its output alone, taken from the other text, brings "
        f"{percent(best.share)} of the change."
    )


def _span(found: PatchMap, first: int, last: int) -> str:
    if first == last:
        return f"behind {found.layers[first]}"
    return f"from {found.layers[first]} to {found.layers[last]}"


def proof_text(found: PatchMap) -> str:
    """The check of the whole: every word patched at once is the other text."""
    said = f"All words patched at once behind {found.layers[0]} give a share of {found.whole:.4f}"
    return f"{said}: exact." if found.exact else f"{said} and not 1: NOT proved."


def shown_columns(found: PatchMap) -> list[int]:
    """The words that are drawn: from the first difference on; of many, those that do most."""
    columns = [
        column
        for column in range(len(found.columns))
        if any(found.of(part)[:, column].any() for part in TITLES) or column in found.changed
    ]
    strength = {
        column: max(float(abs(found.of(part)[:, column]).max()) for part in TITLES)
        for column in columns
    }
    return sorted(sorted(columns, key=lambda column: -strength[column])[:WORDS])

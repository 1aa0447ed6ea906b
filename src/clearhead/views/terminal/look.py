"""A whole look in the terminal: one word, one head, all heads, and what was written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.rule import Rule
from rich.text import Text

from clearhead.explain.generated import GeneratedToken
from clearhead.explain.look import Look
from clearhead.explain.pictures import WordPicture, headline_of
from clearhead.views.numbers import weight_text
from clearhead.views.terminal.gallery import salience_grid
from clearhead.views.terminal.heatmap import heatmap
from clearhead.views.terminal.parts import ACCENT, LEAST, QUIET, cut, indented
from clearhead.views.terminal.word import sentence, source_bars

OVER_ALL = 6  # sources that are named
MAP_LINES = 40  # words up to which the map is a part of the look


def look_parts(look: Look, width: int) -> Iterator[RenderableType]:
    """From the word to the head to all heads."""
    picture = look.word(look.chosen_word, look.chosen_head)
    yield Rule(Text(_title(look), style="bold"), align="left", characters="─", style=QUIET)
    if look.source_text is not None:
        yield Text.assemble(("  read     ", QUIET), cut(look.source_text, width - 12))
        yield Text.assemble(("  written  ", QUIET), cut(look.text, width - 12))
    yield Text()
    yield from _headline(picture, look.chosen_head)
    yield Text()
    yield from sentence(picture, width)
    yield Text()
    yield from source_bars(picture, width)
    yield Text()
    yield from _over_all(look, width)
    yield from _whole_head(look, width)
    yield from _all_heads(look, width)
    yield from _written(look.generated, width)
    yield from _small_print(look, picture)


def _title(look: Look) -> str:
    layers = look.layers
    heads = sorted({layer.heads for layer in layers})
    many = f"{heads[0]}" if len(heads) == 1 else f"{heads[0]} to {heads[-1]}"
    size = f"{len(layers)} layer{'s' * (len(layers) > 1)} × {many} heads"
    return f"{cut(Path(look.name).name, 40)} · {size}" if look.name else size


def _headline(picture: WordPicture, head: str) -> Iterator[Text]:
    found, line = headline_of(picture), Text("  ")
    if found.rests is not None:
        average = "" if picture.head else " on average"
        hidden = f"“{cut(found.hidden, 24)}”"
        line.append(f"{weight_text(found.rests)} rests{average} on {hidden} (hidden); of the rest")
        yield line
        line = Text("  ")
    line.append(f"“{cut(found.word, 24)}”", style=ACCENT)
    if found.source is None:
        line.append(" looks at nothing that is shown")
    else:
        source = "itself" if found.itself else f"“{cut(found.source, 24)}”"
        line.append(" looks most at ").append(source, style=ACCENT)
        line.append(f" ({weight_text(found.weight)})")
    yield line.append(f" in {_spelled(found.head or picture.pooled or head)}")


def _spelled(head: str) -> str:
    """ "L16H5 (layer 16, head 5)"."""
    kinds = {"L": "layer", "E": "encoder layer", "C": "cross-attention layer"}
    layer, _, number = head.partition("H")
    if not number or not layer[1:].isdecimal():
        return head
    return f"{head} ({kinds.get(layer[0], 'layer')} {layer[1:]}, head {number})"


def _over_all(look: Look, width: int) -> Iterator[Text]:
    picture = look.word(look.chosen_word)
    if not picture.sources:
        return
    count = sum(len(layer) for layer in look.saliences()[0])
    pool = look.aids.pool
    how = "" if pool == "max" else f" (the {pool})"
    yield Text(f"  Over all {count} heads{how} it looks most at", style="bold")
    line = Text("   ")
    for source in picture.sources[:OVER_ALL]:
        if source.weight < LEAST:
            break
        where = f" {source.head}" if pool == "max" else ""
        part = f" {cut(source.mark.text, 16)} {weight_text(source.weight)}{where} ·"
        if line.cell_len + len(part) > width:
            yield line
            line = Text("   ")
        line.append(part)
    line.right_crop(2)
    yield line
    yield Text()


def _whole_head(look: Look, width: int) -> Iterator[RenderableType]:
    if len(look.rows) > MAP_LINES:
        return
    picture = look.head()
    yield Text(f"  {picture.head}, every word (row) to every word (column)", style="bold")
    yield from heatmap(picture, width)
    yield Text()


def _all_heads(look: Look, width: int) -> Iterator[RenderableType]:
    names, salience = look.saliences()
    if sum(map(len, names)) < 2:
        return
    word = cut(look.rows[look.chosen_word].text, 24)
    yield Text(f"  All heads by their salience for “{word}” (◆ is shown above)", style="bold")
    yield from salience_grid(names, salience, look.chosen_head, width)
    yield Text()


def _written(tokens: tuple[GeneratedToken, ...], width: int) -> Iterator[RenderableType]:
    if not tokens:
        return
    yield Text("  Each written token, and the words that its query looked at", style="bold")
    for token in tokens:
        probability = "" if token.probability is None else f"{token.probability:>4.0%}"
        parts = [
            f"{cut(source.mark.text, 14)} {weight_text(source.weight)} {source.head}"
            for source in token.sources
        ]
        line = Text(f"    {cut(token.text, 12):<12} {probability}  ")
        yield line.append(cut(" · ".join(parts) or "nothing stands out", width - line.cell_len))
    yield Text()


def _small_print(look: Look, picture: WordPicture) -> Iterator[RenderableType]:
    yield indented(f"Why this: {look.why}.")
    weighted = look.aids.measure == "weight"
    if weighted and any(source.value_weight is not None for source in picture.sources):
        yield indented("·‖v‖: the weight times the length of v, as a share of the row.")
    for note in picture.notes:
        yield indented(note)
    yield indented(f"Proof: {look.proof}.")

"""What is shown first: the word and head that somebody chose, what is left open by the rule."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.marks import find_mark
from clearhead.explain.telling import TileOf, Told, most_telling

ALL = "all"
PICKED = {
    (True, True): "word and head were chosen",
    (True, False): "the word was chosen, the head by the rule",
    (False, True): "the head was chosen, the word by the rule",
    (False, False): "word and head were chosen by the rule",
}


@dataclass(frozen=True)
class Choice:
    """What somebody chose: "they" or 9; "L16H5", "L16" or "all". None: left to the rule."""

    word: int | str | None = None
    head: str | None = None

    @property
    def layer(self) -> str | None:
        """The layer or head that was chosen; None: any of them."""
        return None if self.head == ALL else self.head

    def told(self, group: LayerGroup, tile_of: TileOf) -> Told:
        """The word, its source and the head that tell most, as far as they were left open."""
        row = None if self.word is None else find_mark(group.rows, self.word)
        layers = group.layers if self.layer is None else [self.layer]
        return most_telling(group.field, layers, tile_of, row)

    def why(self, told: Told, group: LayerGroup) -> str:
        """Why this word in this head is shown."""
        picked = PICKED[(self.word is not None, self.head is not None)]
        word = group.rows[told.row].text
        if told.column is None:
            return f"{picked}; no word stands out from what “{word}” gives to others"
        other = group.columns[told.column].text
        return (
            f"{picked}: “{word}” → “{other}” {told.weight:.2f} in {told.head} is strong, and more "
            "than other words give to it there"
        )

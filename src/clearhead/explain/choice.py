"""Choice: the word and head to show first, chosen by the user or by the rule."""

from __future__ import annotations

from dataclasses import dataclass

from clearhead.arguments import shown
from clearhead.errors import InputError
from clearhead.explain.layer_group import LayerGroup
from clearhead.explain.marks import find_mark
from clearhead.explain.pictures import two_decimals
from clearhead.explain.salience import Salient, WeightsOf, most_salient
from clearhead.trace.head_name import parse_name

ALL = "all"
PICKED = {
    (True, True): "word and head were chosen",
    (True, False): "the word was chosen, the head by the rule",
    (False, True): "the head was chosen, the word by the rule",
    (False, False): "word and head were chosen by the rule",
}


def check_head(name: object, what: str = "head", *, given: bool = False) -> None:
    """Refuse what is no name of a head or layer; "all" is fine, and None unless it is ``given``."""
    if (name is None and not given) or (isinstance(name, str) and name == ALL):
        return
    if not isinstance(name, str):
        raise InputError(f'{what} must be a name such as "L16H5", or "all"; got {shown(name)}.')
    parse_name(name)


@dataclass(frozen=True)
class Choice:
    """The user's choice: "they" or 9; "L16H5", "L16" or "all". None: the rule chooses."""

    word: int | str | None = None
    head: str | None = None

    @property
    def layer(self) -> str | None:
        """The layer or head that was chosen; None: any of them."""
        return None if self.head == ALL else self.head

    def find(self, group: LayerGroup, weights_of: WeightsOf) -> Salient:
        """Find the most salient word, source and head among those that were not chosen."""
        row = None if self.word is None else find_mark(group.rows, self.word)
        layers = group.layers if self.layer is None else [self.layer]
        return most_salient(group.salience_axes, layers, weights_of, row)

    def why(self, salient: Salient, group: LayerGroup) -> str:
        """Explain in a sentence why this word and this head are shown."""
        picked = PICKED[(self.word is not None, self.head is not None)]
        word = group.rows[salient.row].text
        if salient.column is None:
            return f"{picked}; no word stands out from what “{word}” gives to others"
        other = group.columns[salient.column].text
        found = f"“{word}” → “{other}” {two_decimals(salient.weight)} in {salient.head} is strong"
        why = f"{found}, and more than other words give to it there"
        if self.head in (None, salient.head):
            return f"{picked}: {why}"
        return f"{picked}; most salient in {self.head}: {why}"

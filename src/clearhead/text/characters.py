"""A tokenizer whose tokens are characters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from clearhead.files.json_file import write_json
from clearhead.text.tokenizer import check_text, writing_errors
from clearhead.text.tokenizer_json import settings_json, tokenizer_json
from clearhead.text.vocabulary import VocabularyTokenizer


class CharacterTokenizer(VocabularyTokenizer):
    """One token per character (Unicode code point); ``decode`` gives the text back exactly.

    ``save`` writes a ``tokenizer.json`` as well, which `transformers` opens.
    """

    kind: ClassVar[str] = "characters"

    @classmethod
    def from_texts(
        cls, texts: Iterable[str] | str, *, add_bos: bool = False, add_eos: bool = False
    ) -> CharacterTokenizer:
        """A tokenizer that knows every character of these texts, in sorted order."""
        known: set[str] = set()
        for text in [texts] if isinstance(texts, str) else texts:
            known.update(check_text(text))
        return cls(sorted(known), add_bos=add_bos, add_eos=add_eos)

    @staticmethod
    def spans(text: str) -> Iterator[tuple[int, int]]:
        """One span per character."""
        return ((index, index + 1) for index in range(len(text)))

    @staticmethod
    def join(pieces: Sequence[str]) -> str:
        """The characters side by side."""
        return "".join(pieces)

    def save(self, folder: Path | str) -> None:
        """Write ``vocabulary.json``, and the two files that `transformers` reads."""
        super().save(folder)
        with writing_errors(folder) as place:
            for name, content in self.for_others().items():
                write_json(place / name, content)

    def for_others(self) -> dict[str, dict[str, Any]]:
        """The files that other programs read, by name."""
        specials = {name: id for id, name in enumerate(self._specials)}
        ends = {"add_bos": self.add_bos, "add_eos": self.add_eos}
        return {
            "tokenizer.json": tokenizer_json(self._ids, specials, **ends),
            "tokenizer_config.json": settings_json(self.specials, specials),
        }

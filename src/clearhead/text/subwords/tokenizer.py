"""Subword tokenizers: BPE, WordPiece and Unigram, computed by the `tokenizers` package."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clearhead.arguments import flag
from clearhead.errors import InputError
from clearhead.files.json_file import read_json, write_json
from clearhead.files.regular_file import LARGEST_TEXT
from clearhead.files.text_file import write_text
from clearhead.text.spelling import readable
from clearhead.text.subwords.file import (
    SubwordSettings,
    check_added,
    check_subword_file,
    read_settings,
)
from clearhead.text.subwords.rust_guard import rust_errors
from clearhead.text.token import Token
from clearhead.text.tokenizer import (
    SPECIAL_NAMES,
    SpecialTokens,
    Tokenizer,
    check_text,
    writing_errors,
)

if TYPE_CHECKING:
    import tokenizers

FILE_NAME = "tokenizer.json"
SETTINGS_NAME = "tokenizer_config.json"


class SubwordTokenizer(Tokenizer):
    """A `tokenizers.Tokenizer` behind our interface.

    ``names`` says which vocabulary entries are bos, eos, pad, unk, mask, cls and sep; an entry that
    the vocabulary does not have is left out. Truncation and padding are disabled: a model file
    often brings the settings of somebody's last training run. Spans include the space that a piece
    begins with, whatever the file says about trimming them, so that they cover the text.
    A prefix space that SentencePiece puts before a text shares the first character's span.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        names: Mapping[str, str] | None = None,
        chat_template: str | None = None,
    ) -> None:
        backend.no_truncation()
        backend.no_padding()
        self.backend = backend
        self.chat_template = chat_template
        self.specials = _register_specials(backend, names or {})
        self._size = 1 + max(backend.get_vocab(with_added_tokens=True).values(), default=-1)
        decoder = json.loads(backend.decoder.__getstate__()) if backend.decoder else None
        self._readable = readable(decoder)
        self._readable_pieces: dict[int, str] = {}

    @classmethod
    def from_file(cls, path: Path | str) -> SubwordTokenizer:
        """Read a ``tokenizer.json``, and the settings files that lie beside it."""
        path = Path(path)
        content = read_json(path, largest=LARGEST_TEXT)
        return cls.from_content(content, read_settings(path.parent), where=str(path))

    @classmethod
    def from_content(
        cls, content: dict[str, Any], settings: SubwordSettings, *, where: str
    ) -> SubwordTokenizer:
        """Make the tokenizer that the content of a ``tokenizer.json`` describes.

        Raises:
            CheckpointError: the content contradicts itself; ``where`` says whose it is.
        """
        import tokenizers

        check_subword_file(content, where=where)
        with rust_errors(f"reading {where}"):
            backend = tokenizers.Tokenizer.from_str(json.dumps(_with_whole_spans(content)))
        check_added(content, backend.token_to_id, where=where)
        with rust_errors(f"reading {where}"):
            return cls(backend, names=settings.names, chat_template=settings.chat_template)

    @property
    def size(self) -> int:
        """The highest id plus one: the rows that an embedding needs."""
        return self._size

    def encode(self, text: str, *, special: bool = True) -> list[int]:
        """The ids of ``text``."""
        ids: list[int] = self._encoding(text, special).ids
        return ids

    def tokens(self, text: str, *, special: bool = True) -> list[Token]:
        """The tokens of ``text`` with their spans."""
        encoding = self._encoding(text, special)
        found: list[Token] = []
        position = 0
        for id, (start, end), added in zip(
            encoding.ids, encoding.offsets, encoding.special_tokens_mask, strict=True
        ):
            if added:
                start = end = position
            position = end
            is_special = bool(added) or (id in self.specials.all and id != self.specials.unk)
            if id not in self._readable_pieces:
                self._readable_pieces[id] = self._readable(self.piece(id))
            found.append(Token(id, self._readable_pieces[id], start, end, is_special))
        return found

    def decode(self, ids: Iterable[int], *, skip_special: bool = True) -> str:
        """The text of ``ids``; bytes that make no character become U+FFFD."""
        numbers, skip_special = self.check_ids(ids), flag("skip_special", skip_special)
        with rust_errors("decoding"):
            text: str = self.backend.decode(numbers, skip_special_tokens=skip_special)
        return text

    def piece(self, id: int) -> str:
        """The raw vocabulary entry of an id, such as ``Ġkids`` or ``##ing``."""
        piece: str | None = self.backend.id_to_token(self.check_id(id))
        if piece is None:
            raise InputError(f"token id {id} is a gap in this vocabulary: it names nothing.")
        return piece

    def id(self, piece: str) -> int | None:
        """The id of a raw vocabulary entry; ``None`` when it has none."""
        found: int | None = self.backend.token_to_id(check_text(piece, "piece"))
        return found

    def save(self, folder: Path | str) -> None:
        """Write ``tokenizer.json`` and ``tokenizer_config.json``; `transformers` reads them too."""
        settings: dict[str, Any] = {"tokenizer_class": "PreTrainedTokenizerFast"}
        for name in SPECIAL_NAMES:
            id = getattr(self.specials, name)
            if id is not None:
                settings[f"{name}_token"] = self.piece(id)
        if self.chat_template is not None:
            settings["chat_template"] = self.chat_template
        with writing_errors(folder) as place:
            write_text(place / FILE_NAME, self.backend.to_str())
            write_json(place / SETTINGS_NAME, settings)

    def _encoding(self, text: str, special: bool) -> tokenizers.Encoding:
        check_text(text)
        special = flag("special", special)
        with rust_errors("encoding"):
            return self.backend.encode(text, add_special_tokens=special)


def _register_specials(backend: tokenizers.Tokenizer, names: Mapping[str, str]) -> SpecialTokens:
    from tokenizers import AddedToken

    found = {name: backend.token_to_id(names[name]) for name in SPECIAL_NAMES if name in names}
    ids = {name: id for name, id in found.items() if id is not None}
    added = backend.get_added_tokens_decoder()
    plain = {names[n] for n, id in ids.items() if id not in added or not added[id].special}
    backend.add_special_tokens(
        [AddedToken(piece, normalized=False, special=True) for piece in sorted(plain)]
    )
    marked = {id for id, token in backend.get_added_tokens_decoder().items() if token.special}
    return SpecialTokens(**ids, all=frozenset(marked.union(ids.values())))


def _with_whole_spans(content: dict[str, Any]) -> dict[str, Any]:
    """The file's content with offset trimming, truncation and padding off."""
    processor = content.get("post_processor")
    steps = processor.get("processors", [processor]) if isinstance(processor, dict) else []
    for step in steps if isinstance(steps, list) else []:
        if isinstance(step, dict) and "trim_offsets" in step:
            step["trim_offsets"] = False
    return content | {"truncation": None, "padding": None}

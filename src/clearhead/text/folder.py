"""The tokenizer in a folder, whichever kind it is."""

from __future__ import annotations

from pathlib import Path

from clearhead.errors import CheckpointError
from clearhead.files.json_file import read_json
from clearhead.files.regular_file import LARGEST_TEXT
from clearhead.text import vocabulary
from clearhead.text.characters import CharacterTokenizer
from clearhead.text.subwords import tokenizer as subwords
from clearhead.text.subwords.tokenizer import SubwordTokenizer
from clearhead.text.tokenizer import Tokenizer
from clearhead.text.words import WordTokenizer

PLAIN_KINDS = {kind.kind: kind for kind in (CharacterTokenizer, WordTokenizer)}


def load_tokenizer(folder: Path | str) -> Tokenizer:
    """Read the tokenizer that ``save`` wrote, or a hub folder's ``tokenizer.json``."""
    folder = Path(folder)
    subword_file, plain_file = folder / subwords.FILE_NAME, folder / vocabulary.FILE_NAME
    if subword_file.exists() and plain_file.exists():
        plain = _load_plain(plain_file)
        if isinstance(plain, CharacterTokenizer) and _is_made_of(plain, subword_file):
            return plain
        raise CheckpointError(
            f"{folder} holds two tokenizers, {subword_file.name} and {plain_file.name}.",
            hint="remove the one that does not belong to the model.",
        )
    if subword_file.exists():
        return SubwordTokenizer.from_file(subword_file)
    if plain_file.exists():
        return _load_plain(plain_file)
    raise CheckpointError(f"{folder} holds no tokenizer: {_what_is_there(folder)}.")


def _is_made_of(tokenizer: CharacterTokenizer, path: Path) -> bool:
    """True if the file is the one that lies beside this vocabulary for other programs."""
    return read_json(path, largest=LARGEST_TEXT) == tokenizer.for_others()[path.name]


def _load_plain(path: Path) -> Tokenizer:
    kind = vocabulary.read_vocabulary(path)["kind"]
    if kind not in PLAIN_KINDS:
        known = " and ".join(PLAIN_KINDS)
        raise CheckpointError(f"{path}: the kind {kind!r} is unknown; there are {known}.")
    return PLAIN_KINDS[kind].from_file(path)


def _what_is_there(folder: Path) -> str:
    if not folder.is_dir():
        return "it is no folder"
    if (folder / "tokenizer.model").exists() or (folder / "vocab.txt").exists():
        return (
            "there is only the older vocabulary format without tokenizer.json; load it once with "
            "transformers' AutoTokenizer and call save_pretrained to get one"
        )
    return f"{subwords.FILE_NAME} or {vocabulary.FILE_NAME} was wanted"

"""Tokenizer folders: tokenizer.json of each kind, its settings files, our own vocabulary.json."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from random import Random

from clearhead.text.characters import CharacterTokenizer
from clearhead.text.folder import load_tokenizer
from clearhead.text.subwords.training import train_bpe, train_unigram, train_wordpiece
from clearhead.text.words import WordTokenizer
from tests.hostile.formats.models import TEXT, folder_files, run_tokenizer
from tests.hostile.mutant import Format

SPECIALS = {
    "bos_token": "<bos>",
    "eos_token": {"content": "<eos>", "lstrip": False},
    "unk_token": "<unk>",
    "pad_token": "<pad>",
}
TEMPLATE = "{% for m in messages %}{{ bos_token }}{{ m.role }}: {{ m.content }}{% endfor %}"


def use(folder: Path, random: Random) -> None:
    """Loads the tokenizer, runs it, and writes it again."""
    tokenizer = load_tokenizer(folder)
    run_tokenizer(tokenizer, random)
    if random.random() < 0.05:
        with tempfile.TemporaryDirectory(dir=folder.parent) as place:
            tokenizer.save(place)


def _specimens() -> list[dict[str, bytes]]:
    made = [
        train_bpe([TEXT] * 3, 280),
        train_wordpiece([TEXT] * 3, 60),
        train_unigram([TEXT] * 9, 40),
        WordTokenizer.from_texts(TEXT),
        CharacterTokenizer.from_texts(TEXT, add_bos=True, add_eos=True),
    ]
    found = []
    for number, tokenizer in enumerate(made):
        with tempfile.TemporaryDirectory() as place:
            tokenizer.save(place)
            files = folder_files(Path(place))
        if number < 3:
            files["special_tokens_map.json"] = json.dumps(SPECIALS).encode()
        if number == 0:
            settings = json.loads(files["tokenizer_config.json"])
            settings["chat_template"] = [{"name": "default", "template": TEMPLATE}]
            files["tokenizer_config.json"] = json.dumps(settings).encode()
            files["chat_template.jinja"] = TEMPLATE.encode()
        found.append(files)
    return found


TOKENIZER = Format("tokenizer", _specimens, use, weight=1.5)

"""Corpora: CoNLL-U, tables of coreference, plain text, with the targets of every sentence."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from random import Random

from clearhead.explain.roles.built_in_properties import BUILT_IN
from clearhead.explain.roles.corpus.sources import corpus_of
from clearhead.explain.roles.corpus.tokenised import tokenised
from clearhead.text.words import WordTokenizer
from clearhead.training.data.corpus import read_documents
from tests.hostile.mutant import Format
from tests.shared.role_models import DONT, conllu_row

MANY = [
    "# sent_id = 2",
    "# text = On 3 May 2021 the kids saw lions (and they ran).",
    conllu_row("1-2", "On", "_", "_", "_", "_", "_", "_", "_", "_"),
    conllu_row("1", "O", "on", "ADP", "_", "_", "3", "case"),
    conllu_row("2", "n", "on", "X", "_", "_", "1", "dep"),
    conllu_row("3", "3", "3", "NUM", "_", "_", "0", "root"),
    conllu_row("4", "May", "May", "PROPN", "_", "_", "3", "flat", "_", "SpaceAfter=Yes"),
    "",
    "# text = Stop.",
    conllu_row("1", "Stop", "stop", "VERB", "_", "_", "0", "root", "_", "SpaceAfter=No"),
    conllu_row("2", ".", ".", "PUNCT", "_", "_", "1", "punct"),
    "",
]
TABLE = (
    "# remarks begin so\n"
    "The kids were scared of the lions, so they left.\t38:42\t4:8\n"
    "The kids were scared of the lions, so they left.\t4:8\t28:33\n"
    "Mary saw her on 3 May 2021.\t9:12\t0:4\n"
)
PROSE = (
    "The kids were scared of the lions, so they left. Dr. Who came at 3 p.m. on 4 July 1999!\n"
    "“Why?” asked Mary (again). It cost $3.50 … e.g. nothing.\n\n# A title\n\nThe end, no. 7.\n"
)
NAMES = ("corpus.conllu", "corpus.tsv", "corpus.txt")
PIECES = WordTokenizer.from_texts(["the kids saw lions"])


def use(folder: Path, random: Random) -> None:
    """Reads the sentences, cuts them into tokens, and asks every property for its targets."""
    path = next((p for name in NAMES if os.path.lexists(p := folder / name)), folder / NAMES[0])
    for sentence in islice(corpus_of(path), 50):
        tokens = tuple(PIECES.tokens(sentence.text))
        if not 1 < len(tokens) < 200:
            continue
        cut = tokenised(sentence, tokens)
        one = BUILT_IN[random.choice(list(BUILT_IN))]
        found = getattr(one, "targets", None) or getattr(one, "members", None)
        if found is not None:
            found(cut)
        assert sentence.key >= 0
        assert all(0 <= w.start <= w.end <= len(sentence.text) for w in sentence.words)
        assert all(w.head is None or 0 <= w.head < len(sentence.words) for w in sentence.words)


def use_text(folder: Path, random: Random) -> None:
    """Also as a text to train on."""
    if random.random() < 0.5 or (folder / "corpus.txt").is_dir():
        use(folder, random)
    else:
        read_documents([folder / "corpus.txt"])


def _conllu() -> list[dict[str, bytes]]:
    return [{"corpus.conllu": "\n".join(rows).encode()} for rows in (DONT, MANY)]


CONLLU = Format("CoNLL-U", _conllu, use, weight=2.0)
COREFERENCE = Format("coreference", lambda: [{"corpus.tsv": TABLE.encode()}], use)
TEXT = Format("text", lambda: [{"corpus.txt": PROSE.encode()}], use_text)

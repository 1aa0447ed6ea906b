from __future__ import annotations

import subprocess
import sys

import pytest

from clearhead.errors import InputError
from clearhead.text import CharacterTokenizer
from clearhead.text.tokenizer import check_text

LETTERS = CharacterTokenizer("abc")


def test_ids_outside_the_vocabulary() -> None:
    with pytest.raises(InputError, match=r"token id 7 is not in this vocabulary of 7 entries"):
        LETTERS.decode([7])
    with pytest.raises(InputError, match="token id -1"):
        LETTERS.piece(-1)
    with pytest.raises(InputError, match=r"a token id must be a whole number; got 1\.5"):
        LETTERS.check_id(1.5)
    with pytest.raises(InputError, match="True"):
        LETTERS.check_id(True)


def test_what_is_no_text() -> None:
    with pytest.raises(InputError, match="takes a str; bytes came"):
        check_text(b"abc")
    with pytest.raises(InputError, match=r"lone surrogate.* at position 2"):
        LETTERS.encode("ab\ud800")


def test_the_import_is_cheap() -> None:
    code = (
        "import sys; import clearhead.text as t; t.CharacterTokenizer('ab').encode('ba');"
        "print(sorted({'tokenizers', 'jinja2', 'torch', 'transformers'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr) == ("[]\n", "")

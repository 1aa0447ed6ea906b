from __future__ import annotations

import pytest
import torch

from clearhead.errors import InputError
from clearhead.explain.roles.reader import Reader
from clearhead.text.words import WordTokenizer


def test_a_model_that_nobody_knows_how_to_run_says_so() -> None:
    tokenizer = WordTokenizer.from_texts(["a b"])
    with pytest.raises(InputError, match="how to run Linear on token ids is not known"):
        Reader(torch.nn.Linear(3, 3), tokenizer)
    with pytest.raises(InputError, match="needs the model's tokenizer"):
        Reader(torch.nn.Linear(3, 3))

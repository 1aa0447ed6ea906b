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


def test_every_number_of_a_model_is_in_its_fingerprint() -> None:
    tokenizer = WordTokenizer.from_texts(["a b"])
    module = torch.nn.Linear(101, 97)
    module.register_buffer("table", torch.arange(9))
    reader = Reader(module, tokenizer, forward=lambda ids, _: ids)
    seen = {reader.fingerprint}
    with torch.no_grad():
        module.weight[57, 43] += 0.5
        seen.add(reader.fingerprint)
        module.bias[96] += 0.5
        seen.add(reader.fingerprint)
        module.weight.copy_(module.weight.flip(0))  # the same numbers in another order
        seen.add(reader.fingerprint)
    module.get_buffer("table")[8] = 0
    seen.add(reader.fingerprint)
    assert len(seen) == 5 and reader.fingerprint in seen

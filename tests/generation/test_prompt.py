"""Prompts as a user gives them become checked token ids."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.prompt import (
    bos_of,
    decoder_start_ids,
    prompt_ids,
    prompt_rows,
    tokenizer_of,
)


def test_one_prompt_or_several_in_text_or_ids(wordy: Loaded) -> None:
    assert wordy.tokenizer is not None
    the, door = wordy.tokenizer.encode("the"), wordy.tokenizer.encode("door")
    assert prompt_rows(wordy, "the") == [the]
    assert prompt_rows(wordy, ["the", "door"]) == [the, door]
    assert prompt_rows(wordy, [5, 7, 11]) == [[5, 7, 11]]
    assert prompt_rows(wordy, [[5], [7, 11]]) == [[5], [7, 11]]
    assert prompt_rows(wordy, (5,)) == [[5]]


@pytest.mark.usefixtures("unchecked")
def test_ids_of_numpy_are_ids_and_others_are_refused(wordy: Loaded) -> None:
    assert prompt_ids(wordy, [np.int64(5), 306]) == [5, 306]  # type: ignore[list-item]
    bad: Any
    for bad in (307, -1, True, 1.0, "5"):
        with pytest.raises(InputError, match=r"whole number from 0 to 306; got"):
            prompt_ids(wordy, [bad])
    with pytest.raises(InputError, match="several of either; got int"):
        prompt_ids(wordy, 5)  # type: ignore[arg-type]


def test_an_empty_prompt_is_the_bos_token(wordy: Loaded, tiny: Any) -> None:
    assert prompt_ids(wordy, "") == prompt_ids(wordy, []) == [1]
    with pytest.raises(InputError, match="the prompt is empty"):
        prompt_ids(tiny("t5").loaded, [])


def test_a_tokenizer_is_needed_for_text(wordy: Loaded) -> None:
    assert tokenizer_of(wordy, "a test") is wordy.tokenizer
    with pytest.raises(InputError, match="a test needs a tokenizer, and wordy came without one"):
        tokenizer_of(replace(wordy, tokenizer=None), "a test")


def test_the_bos_token_comes_from_config_or_tokenizer(wordy: Loaded) -> None:
    assert bos_of(replace(wordy, config=wordy.config.changed(bos=7))) == 7
    without = replace(wordy, config=wordy.config.changed(bos=None))
    assert wordy.tokenizer is not None
    assert bos_of(without) == wordy.tokenizer.specials.bos
    assert bos_of(replace(without, tokenizer=None)) is None


def test_the_start_of_the_decoder(tiny: Any) -> None:
    loaded = tiny("bart").loaded
    config = loaded.config
    assert decoder_start_ids(loaded) == [config.start]
    assert decoder_start_ids(replace(loaded, config=config.changed(start=None, bos=3))) == [3]
    with pytest.raises(InputError, match="does not define the token that its decoder starts with"):
        decoder_start_ids(replace(loaded, config=config.changed(start=None, bos=None)))

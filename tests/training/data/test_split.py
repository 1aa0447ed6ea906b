"""What is held out: never more than asked for, never what is learned as well."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from clearhead.errors import InputError
from clearhead.training.data.split import held_out


def test_of_few_documents_the_ends() -> None:
    training, validation = held_out(["abcdefghij", "0123456789"], 0.2, seed=3)
    assert (training, validation) == (["abcdefgh", "01234567"], ["ij", "89"])


def test_of_many_whole_ones() -> None:
    many = [f"document {n}" for n in range(40)]
    training, validation = held_out(many, 0.1, seed=3)
    assert sorted(training + validation) == sorted(many)
    assert 3 <= len(validation) <= 4


def test_a_share_is_at_most_a_half() -> None:
    with pytest.raises(InputError, match=r"at most 0\.5; got 0\.6"):
        held_out(["text"], 0.6, seed=3)


@pytest.mark.parametrize("seed", range(30))
def test_one_large_file_among_many(seed: int) -> None:
    """It is cut, or stays where it is: it is never held out as a whole."""
    documents = [f"{n} short" for n in range(24)] + ["x" * 100_000]
    training, validation = held_out(documents, 0.1, seed)
    size = sum(map(len, documents))
    assert 0.09 * size < sum(map(len, validation)) <= 0.1 * size
    assert sum(map(len, training)) + sum(map(len, validation)) == size


@pytest.mark.parametrize("seed", range(40))
def test_folders_of_every_kind(seed: int) -> None:
    """Sizes from 1 to 10,000 characters, copies, shares: generated."""
    draw = random.Random(seed)
    count = draw.choice((1, 2, 5, 19, 20, 21, 60, 300))
    texts = ["".join(draw.choices("abcdefgh \n", k=int(10 ** draw.uniform(0, 4)))) + str(n)
             for n in range(count)]  # fmt: skip
    documents = texts + draw.choices(texts, k=draw.choice((0, 3, count)))
    share = draw.choice((0.01, 0.1, 0.33, 0.5))
    training, validation = held_out(documents, share, seed)
    size = sum(map(len, documents))
    assert sum(map(len, validation)) <= share * size
    assert sum(map(len, training)) + sum(map(len, validation)) == size
    assert not set(training) & set(validation)
    if size > 2000 and count >= 20:
        assert sum(map(len, validation)) > 0.4 * share * size
    assert (training, validation) == held_out(documents, share, seed)
    whole = Counter(documents)
    for text, times in Counter(validation).items():  # all copies, or the same end of all
        assert times == whole.get(text, times)

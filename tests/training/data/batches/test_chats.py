"""Batches of chats: every answer once in a pass, no chat sees another."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import torch

from clearhead.errors import InputError
from clearhead.training.data.batches.batch import IGNORED, PackedBatch
from clearhead.training.data.batches.chats import ChatBatches, chats_in_order, cut_to
from clearhead.training.data.chats import Example
from clearhead.training.initialisation import fresh_model
from clearhead.training.objectives import NextToken
from clearhead.training.sizes import language_config


def examples(count: int, longest: int = 13) -> list[Example]:
    """Chats of ids that occur nowhere else."""
    generator, at, made = random.Random(7), 1, []
    for _ in range(count):
        size = generator.randint(3, longest)
        learned = [False, *(generator.random() < 0.5 for _ in range(size - 2)), True]
        made.append(Example(list(range(at, at + size)), learned))
        at += size
    return made


def targets(batches: list[PackedBatch]) -> Counter[int]:
    return Counter(id for b in batches for id in b.targets.flatten().tolist() if id != IGNORED)


def test_every_answer_once_in_each_pass() -> None:
    made = examples(23)
    wanted = Counter(id for e in made for id, on in zip(*e, strict=True) if on)
    batches = ChatBatches(made, row=17, batch_tokens=50, seed=3)
    assert targets(chats_in_order(made, row=17, batch_tokens=50)) == wanted
    number, seen = 0, Counter[int]()
    for turn in range(1, 4):
        while seen.total() < turn * wanted.total():
            seen += targets([batches.batch(number)])
            number += 1
        assert seen == Counter(dict.fromkeys(wanted, turn))
    first = batches.batch(1)
    assert torch.equal(ChatBatches(made, row=17, batch_tokens=50, seed=3).batch(1).ids, first.ids)
    assert first.ids.shape[0] <= 50 // 17


def test_a_chat_beside_others_has_the_loss_that_it_has_alone() -> None:
    config = language_config("tiny", 211, model=12, layers=2, heads=2, feed_forward=10, context=40)
    objective = NextToken(fresh_model(config, 3))  # type: ignore[arg-type]
    made = examples(7)
    together = sum(
        float(objective(b).detach()) for b in chats_in_order(made, row=31, batch_tokens=62)
    )
    alone = sum(float(objective(chats_in_order([e], row=31, batch_tokens=62)[0]).detach())
                for e in made)  # fmt: skip
    assert together == pytest.approx(alone, rel=1e-5)


def test_long_chats_keep_their_end() -> None:
    assert cut_to(Example([1, 2, 3, 5], [False, False, False, True]), 2) == (
        [2, 3, 5], [False, False, True],
    )  # fmt: skip
    with pytest.raises(InputError, match="no answer to learn from"):
        ChatBatches([Example([1, 2], [True, False])], row=5, batch_tokens=5, seed=0)

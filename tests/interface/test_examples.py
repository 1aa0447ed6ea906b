"""Bad calls that gave raw errors, hung, or were accepted: one by one, with what is said now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import clearhead as ch
from clearhead.errors import ClearheadError
from tests.interface import subjects
from tests.interface.subjects import CONTEXT, SIZES, TEXT, ids
from tests.interface.values import nested, quietly

pytestmark = pytest.mark.usefixtures("unchecked")


def three(**options: Any) -> Any:
    query = torch.ones(1, 2, 3, 4)
    return ch.attention(query, query, query, **options)


def decoder() -> Any:
    return subjects.decoder().model


def translated(sources: int, targets: int) -> Any:
    return subjects.translator().model(ids(sources, 4), ids(targets, 5))


def labelled(text: str) -> Any:
    return subjects.watched().label(subjects.tokenizer(), text)


def rotating() -> Any:
    config = ch.ModelConfig(kind="decoder", layers=1, **{**SIZES, "context": 8})
    return ch.Decoder(config)


Bad = Callable[[], Any]
BAD: dict[str, tuple[Bad, str]] = {
    "a string as window": (lambda: three(window="3"), "window .* whole number of 1 or more"),
    "a string as scale": (lambda: three(scale="1"), "scale .* must be a finite number"),
    "a huge scale": (lambda: three(scale=1e300), "scale must fit into float32"),
    "a huge softcap": (lambda: three(softcap=1e300), "softcap must fit into float32"),
    "an array as causal": (lambda: three(causal=torch.ones(2)), "causal must be True or False"),
    "sparse tensors": (
        lambda: ch.attention(*[torch.eye(3).to_sparse()] * 3),
        "must be a dense tensor; got torch.sparse_coo",
    ),
    "nested tensors": (
        lambda: ch.attention(*[quietly(nested)] * 3),
        "must be a dense tensor; got a nested one",
    ),
    "a mask elsewhere": (
        lambda: three(mask=torch.ones(3, 3, dtype=torch.bool, device="meta")),
        "mask must be on cpu, as the rest is; got meta",
    ),
    "no config": (lambda: ch.Decoder(None), "config must be a ModelConfig; got None"),  # type: ignore[arg-type]
    "a list as ids": (lambda: decoder()([[1, 2]]), "ids must be a torch tensor; got list"),
    "None as ids": (lambda: decoder()(None), "ids must be a torch tensor; got NoneType"),
    "floats as ids": (lambda: decoder()(torch.ones(1, 3)), "ids must be whole numbers"),
    "meta ids": (lambda: decoder()(ids().to("meta")), "ids must be on cpu"),
    "sparse ids": (lambda: decoder()(ids().to_sparse()), "ids must be a dense tensor"),
    "a batch of none": (lambda: decoder()(ids()[:0]), r"at least one token; got \(0, 5\)"),
    "negative ids": (lambda: decoder()(-ids()), "token ids must be 0 … 40"),
    "ids beyond the vocabulary": (lambda: decoder()(ids() + 40), "token ids must be 0 … 40"),
    "another model's cache": (
        lambda: decoder()(ids(), cache=subjects.another_models_cache()),
        "cache must be of this model, with 2 layers; got one of another model, with 1",
    ),
    "a layer's cache": (
        lambda: decoder()(ids(), cache=ch.KVCache()),
        r"cache must come from model\.new_cache\(\); got KVCache",
    ),
    "another batch's cache": (
        lambda: decoder()(ids(3, 5), cache=subjects.model_cache()),
        "cache holds a batch of 2, and the ids are 3 rows",
    ),
    "9 tokens in a context of 8": (
        lambda: rotating()(ids(1, 9)),
        "9 tokens do not fit into this model's context of 8",
    ),
    "9 tokens in two steps": (
        lambda: _in_two_steps(rotating()),
        "9 tokens do not fit into this model's context of 8",
    ),
    "sources of another batch": (
        lambda: translated(1, 2),
        "source and target must be of one batch; got 1 sources and 2 targets",
    ),
    "a label of 2 tokens": (
        lambda: labelled("th"),
        f"the text has 2 tokens, but L0 saw {len(TEXT)} columns",
    ),
    "row None": (lambda: subjects.seen()["L0H1"].row(None), "a row is chosen by its index"),  # type: ignore[arg-type]
    "a cell that is not there": (
        lambda: subjects.seen()["L0H1"].map().cell(99, 99),
        r"row \(of cells\) must be a whole number from 0 to 19; got 99",
    ),
    "no model": (lambda: ch.load(None), "load takes a name, a path or a model"),  # type: ignore[arg-type]
    "no device": (
        lambda: ch.load(subjects.model_folder(), device="xyz"),
        "device: there is no device 'xyz'",
    ),
    "a session of nothing": (lambda: ch.Session(None), "loaded must be a model"),  # type: ignore[arg-type]
    "properties 5": (
        lambda: ch.roles(subjects.decoder(), [TEXT], properties=5),  # type: ignore[arg-type]
        "properties must be a list of names",
    ),
    "an unused text": (
        lambda: ch.steps(subjects.look(), text="another"),
        "text has no use here: a look has its text and its model already",
    ),
}  # fmt: skip


def _in_two_steps(model: Any) -> None:
    cache = model.new_cache()
    model(ids(1, 5), cache=cache)
    model(ids(1, 4), cache=cache)


@pytest.mark.parametrize("name", BAD)
def test_it_is_refused(name: str) -> None:
    call, said = BAD[name]
    with pytest.raises(ClearheadError, match=said):
        call()


def test_a_full_context_is_accepted() -> None:
    assert decoder()(ids(1, CONTEXT)).shape == (1, CONTEXT, SIZES["vocab"])


def test_a_batch_of_none_attends_to_nothing() -> None:
    layer = ch.MultiHeadAttention(6, 2)
    assert layer(torch.ones(0, 3, 6)).shape == (0, 3, 6)


def test_a_refused_forward_leaves_the_cache_as_it_was() -> None:
    cache = subjects.model_cache()
    with pytest.raises(ClearheadError, match="token ids must be"):
        decoder()(ids() + 90, cache=cache)
    assert cache.length == 5

"""Cross-entropy in chunks: the same loss and gradients as with all logits at once."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional

from clearhead.models.config import ModelConfig
from clearhead.models.heads import LanguageHead
from clearhead.training.data.batches.batch import IGNORED
from clearhead.training.loss import cross_entropy

VOCAB, MODEL = 31, 7


def head_of(**fields: object) -> LanguageHead:
    config = ModelConfig.from_fields(
        {
            "kind": "decoder", "vocab": VOCAB, "context": 5, "model": MODEL, "layers": 1,
            "heads": 1, "feed_forward": 3, "positions": "none", **fields,
        }
    )  # fmt: skip
    head = LanguageHead(config)
    for parameter in head.parameters():
        torch.nn.init.normal_(parameter)
    return head


def test_by_hand() -> None:
    """Equal logits: every token costs log(vocab)."""
    states, targets = torch.zeros(1, 3, MODEL), torch.tensor([[4, IGNORED, 5]])
    loss = cross_entropy(head_of(), torch.randn(VOCAB, MODEL), states, targets)
    assert float(loss.detach()) == pytest.approx(2 * math.log(VOCAB))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(
    "fields",
    [{}, {"tied": False, "output_bias": True}, {"output_softcap": 3.0, "output_scale": 0.7}],
)
def test_chunks_change_nothing(fields: dict[str, object], smoothing: float) -> None:
    torch.manual_seed(3)
    head, embedding = head_of(**fields), torch.randn(VOCAB, MODEL, requires_grad=True)
    states = torch.randn(2, 11, MODEL, requires_grad=True)
    targets = torch.randint(VOCAB, (2, 11))
    targets[1, 3:] = IGNORED

    def gradients(at_once: int) -> list[torch.Tensor]:
        loss = cross_entropy(head, embedding, states, targets, smoothing=smoothing, at_once=at_once)
        inputs = [states, *head.parameters()]
        inputs += [embedding] if fields.get("tied", True) else []
        return [loss, *torch.autograd.grad(2 * loss, inputs)]

    whole = functional.cross_entropy(
        head(states, embedding).flatten(0, 1), targets.flatten(), reduction="sum",
        label_smoothing=smoothing, ignore_index=IGNORED,
    )  # fmt: skip
    torch.testing.assert_close(gradients(10**6)[0], whole)
    for one, other in zip(gradients(10**6), gradients(4 * VOCAB), strict=True):
        torch.testing.assert_close(one, other)


def test_nothing_to_predict_is_no_loss() -> None:
    states = torch.randn(1, 3, MODEL, requires_grad=True)
    loss = cross_entropy(head_of(), torch.randn(VOCAB, MODEL), states, torch.full((1, 3), IGNORED))
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0.0
    assert states.grad is not None and not states.grad.any()

from __future__ import annotations

import torch
from torch import Tensor, nn

from clearhead.trace.watching.layer_filter import LayerFilter
from clearhead.trace.watching.observed_call import ObservedCall
from clearhead.trace.watching.recorder import Recorder
from clearhead.trace.watching.watchers import observe


class Attention(nn.Module):
    """Reports one call of its own making to a recorder."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))
        self.recorder: Recorder | None = None

    def forward(self, observed: ObservedCall) -> Tensor:
        assert self.recorder is not None and self.recorder.module() is self
        observe(self.recorder.keep, observed)
        return observed.query


def call() -> ObservedCall:
    torch.manual_seed(0)
    query, key, value = torch.randn(2, 6, 5, 11), torch.randn(2, 3, 7, 11), torch.randn(2, 3, 7, 13)
    return ObservedCall(query, key, value, scale=0.3, output=None, dropout=0.1)


def recorded(wanted: LayerFilter, values: bool) -> Recorder:
    model = nn.Sequential(Attention())
    recorder = Recorder(model, wanted, values, None)
    model[0].recorder = recorder  # type: ignore[assignment]
    recorder.begin()
    model(call())
    recorder.keep(call())  # outside of the model: of somebody else
    recorder.close()
    return recorder


def test_a_call_becomes_a_record() -> None:
    seen = recorded(LayerFilter(None, None), True).seen
    [layer] = seen.layers
    assert (layer.name, layer.path, layer.heads, layer.kv_heads) == ("L0", "0", 6, 3)
    assert (layer.queries, layer.keys, layer.value_dim) == (5, 7, 13)
    assert layer.note == "weights before dropout" and not layer.causal and layer.values_kept
    scores = call().query @ call().key.repeat_interleave(2, 1).transpose(2, 3) * 0.3
    assert (seen["L0H4"].weights() - torch.softmax(scores, 3)[0, 4]).abs().max() < 1e-6


def test_only_the_wanted_heads_are_kept() -> None:
    seen = recorded(LayerFilter(None, "L0H4"), False).seen
    assert seen.records[0].query.shape == (2, 1, 5, 11) and seen.records[0].head_numbers == (4,)
    assert torch.equal(seen.records[0].key[:, 0], call().key[:, 2])
    missing = recorded(LayerFilter("L9", None), False)
    assert missing.seen.records == []
    assert str(missing.fault).startswith("not in this model: L9 (there are L0).")

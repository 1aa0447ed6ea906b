from __future__ import annotations

import pytest
import torch

from clearhead.explain.why import readout
from clearhead.explain.why.readout import read_tokens
from tests.shared.explained_models import random_decoder
from tests.shared.tiny_models import token_ids

pytestmark = pytest.mark.usefixtures("one_thread")


def test_tokens_are_read_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = random_decoder(output_softcap=3.0)
    monkeypatch.setattr(readout, "LOGITS", 3 * loaded.config.vocab)
    model = loaded.model
    with torch.no_grad():
        states = model.get_submodule("stack")(token_ids(2, 7)).flatten(0, 1)
        logits = model(token_ids(2, 7)).flatten(0, 1).double()
        read = read_tokens(loaded, states[::2], [13, 29])
    assert torch.allclose(read.logits, logits[::2][:, [13, 29]], atol=1e-5)
    assert torch.allclose(3 * torch.tanh(read.uncapped / 3), read.logits, atol=1e-5)
    assert (read.uncapped - read.logits).abs().max() > 1e-3
    expected = logits.softmax(dim=1)[::2][:, [13, 29]]
    assert torch.allclose(read.probabilities, expected, atol=1e-6)

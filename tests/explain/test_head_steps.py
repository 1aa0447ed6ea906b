"""The step table's numbers, recomputed by hand from q, k and v and against the layer's output."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import clearhead as ch
from clearhead.errors import InputError
from clearhead.explain.look import Look
from clearhead.explain.make_look import make_look
from clearhead.explain.step_table import StepTable
from clearhead.text.words import WordTokenizer
from tests.shared.explain_models import decoder, translator


def by_hand(table: StepTable) -> tuple[list[float], list[float]]:
    """Softmax weights and the sum, from the table's own q, k and v, one number at a time."""
    scores = []
    for row in table.rows:
        score = sum(q * k for q, k in zip(table.query, row.key, strict=True)) * table.scale
        if table.softcap is not None:
            score = table.softcap * math.tanh(score / table.softcap)
        scores.append(-math.inf if row.masked else score + (row.bias or 0.0))
    raised = [math.exp(score) for score in scores]
    total = sum(raised) + (0.0 if table.sink is None else math.exp(table.sink.score))
    weights = [number / total for number in raised]
    width = len(table.output)
    output = [
        sum(w * row.value[i] for w, row in zip(weights, table.rows, strict=True))
        for i in range(width)
    ]
    return weights, output


def check_by_hand(table: StepTable) -> None:
    weights, output = by_hand(table)
    assert [row.weight for row in table.rows] == pytest.approx(weights, abs=2e-6)
    assert list(table.output) == pytest.approx(output, abs=1e-5)
    for row in table.rows:
        assert row.scaled == pytest.approx(row.score * table.scale)
        assert list(row.weighted) == pytest.approx([row.weight * v for v in row.value], abs=1e-7)


def watched(states: Tensor, **options: Any) -> tuple[Look, Tensor]:
    """One attention layer with these options, and what it handed on."""
    torch.manual_seed(3)
    module = ch.MultiHeadAttention(30, 5, key_dim=7, value_dim=3, **options).eval()
    if module.sinks is not None:
        torch.nn.init.normal_(module.sinks)
    with torch.no_grad(), ch.watch(module, values=True) as seen:
        result = module(states)
    return Look(seen, model=module), result


OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "window": {"causal": True, "window": 3},
    "softcap": {"softcap": 0.5},
    "sinks": {"sinks": True, "causal": True},
    "biased": {"bias": True},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_step_by_hand_and_the_layers_own_output(name: str) -> None:
    torch.manual_seed(11)
    look, result = watched(torch.randn(1, 11, 30), **OPTIONS[name])
    table = look.steps("L0H2", 6)
    check_by_hand(table)
    assert table.scale_name == "score/2.65"
    assert table.outputs is not None and table.outputs.projected
    assert list(table.outputs.result) == pytest.approx(result[0, 6].tolist(), abs=1e-5)
    assert sum(head.share for head in table.outputs.heads) == pytest.approx(1.0)
    assert table.outputs.heads[2].output == pytest.approx(table.output, abs=1e-6)
    assert table.proof is not None and table.proof.exact


def test_masked_words_say_why() -> None:
    look, _ = watched(torch.randn(1, 11, 30), causal=True, window=3)
    reasons = [row.masked for row in look.steps("L0H0", 6).rows]
    assert reasons == ["window"] * 4 + [""] * 3 + ["future"] * 4


def test_sinks_take_their_share() -> None:
    look, _ = watched(torch.randn(1, 11, 30), sinks=True)
    table = look.steps("L0H1", 4)
    assert table.sink is not None
    assert sum(row.weight for row in table.rows) + table.sink.weight == pytest.approx(1.0, abs=1e-6)


def test_softcap_is_a_step_of_its_own() -> None:
    look, _ = watched(torch.randn(1, 11, 30), softcap=0.5)
    row = look.steps("L0H1", 4).rows[3]
    assert row.capped == pytest.approx(0.5 * math.tanh(row.scaled / 0.5))


def test_a_real_decoder_with_rotary_and_grouped_heads() -> None:
    look = make_look(decoder(), "the students opened their books")
    table = look.steps("L1H3", "their")
    check_by_hand(table)
    assert table.word == "their"
    assert "q and k are shown after rotary" in " ".join(table.notes)
    assert {row.masked for row in table.rows} == {"", "future"}


def test_relative_positions_are_a_bias_and_cross_attention_works() -> None:
    look = make_look(translator(), "their books", source="the students opened the door")
    table = look.steps("L0H1", 1)
    assert table.has_bias
    check_by_hand(table)
    cross = look.steps("C1H2", 0)
    check_by_hand(cross)
    assert "k and v come from the source" in " ".join(cross.notes)
    assert [row.word for row in cross.rows][:2] != []


def test_without_the_model_shares_go_by_the_outputs_lengths() -> None:
    seen = make_look(decoder(), "the students opened").seen
    table = Look(seen).steps("L0H0", 2)
    assert table.outputs is not None and not table.outputs.projected
    lengths = [math.hypot(*head.output) for head in table.outputs.heads]
    assert table.outputs.heads[1].share == pytest.approx(lengths[1] / sum(lengths))


def test_without_values_the_table_ends_at_softmax() -> None:
    loaded = decoder()
    with torch.no_grad(), ch.watch(loaded) as seen:
        loaded.model(torch.tensor([[5, 9, 13]]))
    table = Look(seen).steps("L0H0", 2)
    assert table.output == () and table.outputs is None
    assert sum(row.weight for row in table.rows) == pytest.approx(1.0, abs=1e-5)
    assert "Values were not kept" in " ".join(table.notes)


def test_a_table_is_of_one_head() -> None:
    look = make_look(decoder(), "the students opened")
    with pytest.raises(InputError, match="a step table is of one head, such as L16H5; got L1"):
        look.steps("L1", 1)


def test_padding_is_the_reason_where_there_is_no_word() -> None:
    texts = ["the kids saw the lions", "they left soon"]
    tokenizer = WordTokenizer.from_texts(texts)
    torch.manual_seed(0)
    model = torch.nn.TransformerEncoderLayer(d_model=12, nhead=3, batch_first=True).eval()
    padded = torch.tensor([[False] * 5, [False] * 3 + [True] * 2])
    with torch.no_grad(), ch.watch(model, values=True) as seen:
        model(torch.randn(2, 5, 12), src_key_padding_mask=padded)
    seen.label(tokenizer, texts)
    table = Look(seen, batch=1).steps("L0H1", "left")
    assert [(row.word, row.masked) for row in table.rows] == [
        ("they", ""), ("left", ""), ("soon", ""), ("⟨pad⟩", "padding"), ("⟨pad⟩", "padding"),
    ]  # fmt: skip
    assert [row.weight for row in table.rows[3:]] == [0.0, 0.0]
    check_by_hand(table)
    whole = Look(seen, batch=0).steps("L0H1", "saw")
    assert [row.masked for row in whole.rows] == [""] * 5

"""The whole run: its layers, names of heads, tokens, costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from clearhead.errors import InputError
from clearhead.text.characters import CharacterTokenizer
from clearhead.trace import cost
from clearhead.trace.cost import Limit
from clearhead.trace.record import LayerRecord
from clearhead.trace.seen import Seen
from clearhead.trace.spill import Spill
from clearhead.trace.top_key import TopKey
from tests.shared.synthetic import Options, passage, synthetic


def model(layers: int = 3, **options: object) -> list[LayerRecord]:
    return [
        synthetic(replace(Options(kv_heads=5, seed=i, name=f"L{i}"), **options)).record  # type: ignore[arg-type]
        for i in range(layers)
    ]


def test_layers_are_listed_as_data() -> None:
    layers = Seen(model(batch=2, keys=13, causal=True, values=False)).layers
    assert [layer.name for layer in layers] == ["L0", "L1", "L2"]
    first = layers[0]
    assert (first.batch, first.heads, first.queries, first.keys) == (2, 5, 11, 13)
    assert (first.kind, first.causal, first.values_kept) == ("self", True, False)
    assert first.dtype == torch.float32
    assert "name='L0', path='model.layers.0', kind='self', causal=True" in repr(first)


def test_records_may_come_later() -> None:
    records: list[LayerRecord] = []
    seen = Seen(records)
    assert seen.layers == []
    records.extend(model(1))
    assert len(seen.layers) == 1 and seen["L0H0"].row(0).shape == (11,)
    assert seen.nbytes == records[0].nbytes > 0


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("L40H0", "L40H0: this model has 3 layers of 5 heads"),
        ("L0H5", "L0H5: this model has 3 layers of 5 heads"),
        ("L0H5:9", "L0: no heads 5:9; this layer has 5 heads, 0 … 4"),
        ("L1H2,8", "L1H8: this layer has 5 heads, 0 … 4"),
        ("E1H0", r"this model has no layers named E…; their names begin with \['L'\]"),
        ("layer 3", "'layer 3' is no name of a head: wanted L16H5"),
        ("L1H", "'L1H' is no name of a head"),
        ("l1h2", "'l1h2' is no name of a head"),
        ("L-1H0", "'L-1H0' is no name of a head"),
        ("", "'' is no name of a head"),
    ],
)
def test_names_that_name_nothing(name: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        Seen(model())[name]


def test_heads_of_a_layer_by_index() -> None:
    layer = Seen(model())["L1"]
    assert layer[2:4].heads == (2, 3)
    for chosen, words in (
        (slice(0, 4, 2), "heads are chosen from : to, without steps"),
        ([], "an empty list of heads chooses none"),
        (7, "L1H7: this layer has 5 heads"),
    ):
        with pytest.raises(InputError, match=words):
            layer[chosen]


def test_only_watched_layers_are_listed() -> None:
    records = [synthetic(Options(name="L4")).record, synthetic(Options(name="L16")).record]
    with pytest.raises(InputError, match="L5H0: seen were only L4, L16"):
        Seen(records)["L5H0"]


def test_an_empty_trace_says_why() -> None:
    with pytest.raises(InputError, match=r"no attention was seen: no attention ran inside the"):
        Seen()["L0H0"]
    with pytest.raises(InputError, match="no attention was seen: it is compiled; there is nothing"):
        Seen(missed="it is compiled").verify()
    with pytest.raises(InputError, match="there is nothing to save"):
        Seen().save("nowhere")


def test_label_with_a_tokenizer() -> None:
    tokenizer = CharacterTokenizer.from_texts(["they saw its"])
    seen = Seen(model(1)).label(tokenizer, "they saw it")
    head = seen["L0H0"]
    assert torch.equal(head.row("w"), head.row(7))
    assert [key.token for key in head.top("w", 11) if isinstance(key, TopKey)].count("t") == 2
    with pytest.raises(InputError, match="the text has 12 tokens, but L0 saw 11 columns"):
        seen.label(tokenizer, "they saw its")
    with pytest.raises(InputError, match="2 texts were given, but L0 saw a batch of 1 sequences"):
        seen.label(tokenizer, ["they", "it"])
    assert seen["L0H0"].columns.passage is not None  # a label that does not fit changes nothing


def test_padded_sequences_keep_their_tokens_in_place() -> None:
    record = synthetic(Options(batch=2, queries=9, keys=9, padded=True, causal=True)).record
    whole, short = (
        passage(list("abcdefghi")),
        passage(list("uvwxyz")),
    )  # three keys of padding in front
    seen = Seen([record], [whole, short])
    assert torch.equal(seen["L0H0"].row("c"), seen["L0H0"].row(2))
    second = seen["L0H0"].of(batch=1)
    assert torch.equal(second.row("v"), second.row(4))
    with pytest.raises(InputError, match="no row reads 'c'"):
        second.row("c")
    unmasked = synthetic(Options(batch=2, queries=9, keys=9)).record
    to_the_right = Seen([unmasked], [whole, short])["L0H0"].of(batch=1)
    assert torch.equal(to_the_right.row("v"), to_the_right.row(1))


def test_a_text_that_is_shorter_than_what_was_seen_needs_padding() -> None:
    record = synthetic(Options(queries=9, keys=9)).record
    with pytest.raises(InputError, match="the text has 6 tokens, but L0 saw 9 columns"):
        Seen([record], passage(list("uvwxyz")))["L0H0"]


def test_cross_attention_reads_the_source() -> None:
    records = [
        synthetic(Options(name="E0", queries=5, keys=5)).record,
        synthetic(Options(name="L0", queries=3, keys=3)).record,
        synthetic(Options(name="C0", queries=3, keys=5, kind="cross")).record,
    ]
    seen = Seen(records, passage(list("xyz")), source=passage(list("abcde")))
    assert torch.equal(seen["C0H0"].weights("y", "d"), seen["C0H0"].weights(1, 3))
    assert torch.equal(seen["E0H0"].weights("b", "d"), seen["E0H0"].weights(1, 3))
    assert torch.equal(seen["L0H0"].weights("x", "z"), seen["L0H0"].weights(0, 2))


def test_cost_tells_bytes_and_seconds_beforehand() -> None:
    long = synthetic(Options(queries=2003, keys=2003, causal=True, values=False)).record
    seen = Seen([long])
    row, whole = seen.cost("L0H0", "row"), seen.cost("L0H0", "weights")
    assert row.weights == 2003 and whole.weights == 2003**2
    assert whole.bytes - row.bytes == 4 * (2003**2 - 2003)
    assert whole.seconds > row.seconds > 0
    map_cost, entropy = seen.cost("L0H0", "map", size=100), seen.cost("L0H0", "entropy")
    assert 0.5 < map_cost.weights / 2003**2 < 0.7  # the causal half, and its staircase
    assert entropy.seconds > map_cost.seconds
    assert seen.cost("L0H0", "column", columns=3).weights == 2003
    assert "MB, about" in str(map_cost)


def test_large_views_must_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    head = Seen(model(1))["L0"]
    tight = Limit(bytes=32_000_100)
    with pytest.raises(
        InputError, match=r"weights of L0H0,1,2,3,4 would take 32 MB(.|\n)*limit=None"
    ):
        head.weights(limit=tight)
    assert head.weights(limit=None).shape == (5, 11, 11)
    monkeypatch.setattr(cost, "SURELY_QUICK", 0)
    assert head.map(3).cells.shape == (5, 3, 3)  # the estimate is made, and allows it


def test_a_huge_tile_is_refused_by_itself() -> None:
    record = synthetic(Options(queries=2, keys=2, values=False)).record
    facts = record.facts
    huge = LayerRecord(
        facts, torch.zeros(1, 1, 1, 5).expand(1, 1, 10**6, 5),
        torch.zeros(1, 1, 1, 5).expand(1, 1, 10**6, 5), torch.zeros(1, 1, 1).expand(1, 1, 10**6),
    )  # fmt: skip
    with pytest.raises(InputError, match=r"weights of L0H0 would take 4,000,0\d\d MB"):
        Seen([huge])["L0H0"].weights()


def test_closing_forgets_and_removes_files() -> None:
    spill = Spill(limit=0)
    spill.keep(torch.ones(3))
    assert spill.folder is not None and spill.folder.exists()
    folder = spill.folder
    seen = Seen(model(1), spill=spill)
    seen.close()
    assert not folder.exists() and seen.layers == []

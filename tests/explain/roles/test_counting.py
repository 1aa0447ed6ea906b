"""Counting: the same to the last bit for any batch, order and number of processes."""

from __future__ import annotations

import pytest
import torch
import transformers

import clearhead as ch
from clearhead.explain.roles.built_in_properties import BUILT_IN
from clearhead.explain.roles.counting import Count
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.reader import Reader
from clearhead.text.words import WordTokenizer
from tests.shared.role_models import SOME, counted, same, some_sentences


@pytest.mark.parametrize("family", ["llama", "bert"])
def test_models_of_transformers(family: str) -> None:
    torch.manual_seed(0)
    tokenizer = WordTokenizer.from_texts(sentence.text for sentence in some_sentences())
    sizes = {
        "vocab_size": tokenizer.size, "hidden_size": 30, "intermediate_size": 17,
        "num_hidden_layers": 2, "num_attention_heads": 5, "max_position_embeddings": 64,
    }  # fmt: skip
    model: torch.nn.Module
    if family == "llama":
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**sizes)).eval()
    else:
        model = transformers.BertModel(transformers.BertConfig(**sizes)).eval()
    reader = Reader(model, tokenizer)
    usual = counted(Count(reader, tuple(BUILT_IN.values())))
    assert [layer.name for layer in usual.layers] == ["L0", "L1"]
    assert all(layer.causal == (family == "llama") for layer in usual.layers)
    small = counted(Count(reader, tuple(BUILT_IN.values()), batch_tokens=64))
    assert same(usual, small)


def test_encoders_of_encoder_decoders_are_counted() -> None:
    torch.manual_seed(0)
    tokenizer = WordTokenizer.from_texts(sentence.text for sentence in some_sentences())
    config = ch.ModelConfig(
        kind="encoder-decoder", vocab=tokenizer.size, context=64, model=24, layers=1,
        encoder_layers=2, heads=3, feed_forward=17, positions="sinusoidal",
    )  # fmt: skip
    reader = Reader(ch.EncoderDecoder(config).eval().requires_grad_(False), tokenizer)
    tally = counted(Count(reader, (BUILT_IN["previous token"], BUILT_IN["first token"])))
    assert [layer.name for layer in tally.layers] == ["E0", "E1"]


@pytest.mark.download
@pytest.mark.parametrize("name", ["minilm", "smollm2"])
def test_real_models_count_the_same_to_the_last_bit(name: str) -> None:
    """Batches of one sentence, of many, in another order, and shared by processes."""
    reader, work = Reader(ch.load(name)), list(some_sentences()[: 13 if name == "minilm" else 3])
    wanted, last = (*SOME, BUILT_IN["punctuation"]), [0, 5 if name == "minilm" else 29]
    usual = counted(Count(reader, wanted, last), work)
    assert usual.numbers["mass"].any() and usual.numbers["hits"].any()
    assert same(usual, counted(Count(reader, wanted, last, batch_tokens=16), work))
    assert same(usual, counted(Count(reader, wanted, last, batch_tokens=200), work[::-1]))
    together = Tally()
    for process in range(2):
        together.add(counted(Count(reader, wanted, last, share=(process, 2)), work[::-1]))
    assert same(usual, together)

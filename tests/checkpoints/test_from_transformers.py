from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from torch import nn

import clearhead as ch
from clearhead.checkpoints.from_transformers import is_transformers_model
from clearhead.errors import CheckpointError, InputError
from clearhead.text.subwords.training import train_bpe
from tests.shared.tiny_models import (
    ALL,
    ENCODER_DECODERS,
    LABELS,
    LLAMA,
    assert_same,
    make_reference,
    token_ids,
)

TEXT = "Students opened their books, and 7 of them read 42 pages."


@pytest.fixture(autouse=True)
def _without_gradients(one_thread: None) -> Iterator[None]:
    with torch.no_grad():
        yield


def logits_of(theirs: Any, inputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
    names = ("input_ids", "decoder_input_ids")
    output = theirs(**dict(zip(names, inputs, strict=False)))
    found: torch.Tensor = output.last_hidden_state if "logits" not in output else output.logits
    return found


def inputs_of(name: str) -> tuple[torch.Tensor, ...]:
    source = token_ids(2, 7)
    return (source, token_ids(2, 5)) if name in ENCODER_DECODERS else (source,)


@pytest.mark.parametrize("name", ALL)
def test_same_logits_from_the_same_memory(name: str) -> None:
    theirs, inputs = make_reference(name), inputs_of(name)
    loaded = ch.load(theirs)
    assert_same(loaded.model(*inputs), logits_of(theirs, inputs))
    held = {tensor.untyped_storage().data_ptr() for tensor in theirs.state_dict().values()}
    for place, parameter in loaded.model.named_parameters():
        assert parameter.untyped_storage().data_ptr() in held, place
    assert loaded.path == Path()
    assert loaded.name == type(theirs).__name__
    assert loaded.tokenizer is None


@pytest.mark.parametrize("name", ["llama", "gpt2", "gemma2", "bert-masked", "t5", "bart"])
def test_a_change_in_place_is_visible_on_both_sides(name: str) -> None:
    theirs, inputs = make_reference(name), inputs_of(name)
    ours = ch.load(theirs).model
    before = logits_of(theirs, inputs)
    for parameter in ours.parameters():
        parameter.mul_(1.25)
    changed = logits_of(theirs, inputs)
    assert (changed - before).abs().max() > 0.1
    assert_same(ours(*inputs), changed)
    for parameter in theirs.parameters():
        parameter.mul_(0.8)
    assert_same(ours(*inputs), logits_of(theirs, inputs))


def test_one_fused_matrix_is_seen_as_three() -> None:
    theirs = make_reference("gpt2")
    fused = theirs.transformer.h[1].attn.c_attn.weight  # (42, 3 * 42), in by out
    ours: Any = ch.load(theirs).model
    attention = ours.stack.blocks[1].attention
    for part, projection in enumerate((attention.query, attention.key, attention.value)):
        assert projection.weight.data_ptr() == fused[:, 42 * part :].data_ptr()
        assert projection.weight.stride() == (1, 126)
        assert torch.equal(projection.weight, fused[:, 42 * part : 42 * (part + 1)].T)


def test_theirs_stays_as_it_is() -> None:
    theirs = make_reference("llama").train()
    loaded = ch.load(theirs)
    assert theirs.training
    assert all(parameter.requires_grad for parameter in theirs.parameters())
    assert not loaded.model.training
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())


def test_the_head_and_the_labels_come_from_the_class_and_the_config() -> None:
    config = ch.load(make_reference("bert-labels")).config
    assert config.head == "classification"
    assert config.label_names == tuple(LABELS.values())
    assert ch.load(make_reference("bert-masked")).config.head == "masked"


def test_the_name_it_was_loaded_by(tmp_path: Path) -> None:
    make_reference("gpt2").save_pretrained(tmp_path / "mine")
    theirs = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "mine")
    assert ch.load(theirs).name == str(tmp_path / "mine")


def test_types() -> None:
    theirs = make_reference("llama").to(torch.bfloat16)
    kept = ch.load(theirs)
    assert {parameter.dtype for parameter in kept.model.parameters()} == {torch.bfloat16}
    wide = ch.load(theirs, dtype=torch.float32)
    assert {parameter.dtype for parameter in wide.model.parameters()} == {torch.float32}
    theirs.model.norm.float()
    with pytest.raises(InputError, match=r"several types \(torch.bfloat16, torch.float32\)"):
        ch.load(theirs)


def test_it_generates_like_the_original() -> None:
    theirs = make_reference("gpt2")
    prompt = token_ids(1, 7)
    wanted = theirs.generate(
        prompt, max_new_tokens=11, do_sample=False, pad_token_id=0, eos_token_id=None
    )
    events = ch.generate(
        ch.load(theirs), prompt[0].tolist(), max_tokens=11, temperature=0, engine=False
    )
    tokens = [event.token for event in events if event.token is not None]
    assert tokens == wanted[0, 7 : 7 + len(tokens)].tolist()
    assert len(tokens) > 1


def test_unknown_families_are_refused_with_the_known_ones() -> None:
    config = transformers.OPTConfig(
        vocab_size=11, hidden_size=6, ffn_dim=7, num_hidden_layers=1, num_attention_heads=2,
        word_embed_proj_dim=6, max_position_embeddings=13,
    )  # fmt: skip
    theirs = transformers.OPTForCausalLM(config)
    with pytest.raises(CheckpointError, match=r"OPTForCausalLM is of model_type 'opt'.*\n.*llama"):
        ch.load(theirs)


def test_a_head_that_no_family_has() -> None:
    theirs = transformers.LlamaForSequenceClassification(
        transformers.LlamaConfig(**LLAMA, pad_token_id=0, tie_word_embeddings=True)
    )
    with pytest.raises(CheckpointError, match=r"architectures names LlamaForSequenceClassificat"):
        ch.load(theirs)


def test_weights_that_are_not_here() -> None:
    with torch.device("meta"):
        theirs = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    with pytest.raises(CheckpointError, match="on the meta device"):
        ch.load(theirs)


def test_other_objects() -> None:
    assert is_transformers_model(make_reference("llama"))
    for given in (7, "llama", transformers.LlamaConfig, nn.Linear(2, 3)):
        assert not is_transformers_model(given)
    with pytest.raises(InputError, match=r"or a model of transformers; got a torch\..*\.Linear"):
        ch.load(nn.Linear(2, 3))


def test_a_fast_tokenizer_of_transformers() -> None:
    ours = train_bpe(TEXT, 300, add_bos=True)
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=ours.backend, bos_token="<bos>", eos_token="<eos>", pad_token="<pad>"
    )
    theirs.chat_template = "{{ messages[0].content }}"
    loaded = ch.load(make_reference("llama"), tokenizer=theirs)
    assert loaded.tokenizer is not None
    assert loaded.tokenizer.encode(TEXT) == theirs(TEXT).input_ids
    assert loaded.tokenizer.specials == ours.specials
    assert loaded.tokenizer.chat_template == theirs.chat_template


def test_a_tokenizer_of_ours_is_taken_as_it_is() -> None:
    tokenizer = train_bpe(TEXT, 300)
    assert ch.load(make_reference("llama"), tokenizer=tokenizer).tokenizer is tokenizer
    assert ch.load("dates", tokenizer=tokenizer).tokenizer is tokenizer
    slow = SimpleNamespace(backend_tokenizer=None, special_tokens_map={}, chat_template=None)
    with pytest.raises(InputError, match=r"or a fast one of transformers; got SimpleNamespace"):
        ch.load("dates", tokenizer=slow)

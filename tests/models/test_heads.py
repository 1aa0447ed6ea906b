from __future__ import annotations

from typing import Any

import pytest
import torch

from clearhead.errors import ConfigError, InputError, ShapeError
from clearhead.models.config import ModelConfig
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.models.heads import ClassificationHead, EmbeddingHead, LanguageHead, MaskedHead


def config(**fields: Any) -> ModelConfig:
    sizes = {
        "kind": "decoder", "vocab": 7, "context": 13, "model": 4, "layers": 1, "heads": 2,
        "feed_forward": 3, "labels": 5,
    }  # fmt: skip
    return ModelConfig.from_fields(sizes | fields)


def test_language_head_by_hand() -> None:
    head = LanguageHead(config(output_scale=0.5, output_bias=True, output_softcap=3.0))
    assert head.weight is None
    assert head.bias is not None
    head.bias.fill_(0.25)
    states, embedding = torch.ones(1, 2, 4), torch.arange(28.0).view(7, 4) / 10
    row = embedding[2].sum() * 0.5 + 0.25  # (0.8 + 0.9 + 1.0 + 1.1) / 2 + 0.25 = 2.15
    wanted = 3.0 * torch.tanh(torch.tensor(2.15) / 3.0)
    assert row.item() == pytest.approx(2.15)
    assert head(states, embedding)[0, 1, 2].item() == pytest.approx(wanted.item(), abs=1e-6)


def test_separate_weights() -> None:
    head = LanguageHead(config(tied=False))
    assert head.weight is not None
    states, embedding = torch.randn(2, 3, 4), torch.randn(7, 4)
    torch.testing.assert_close(head(states, embedding), states @ head.weight.T)


def test_masked_head_by_hand() -> None:
    head = MaskedHead(config(kind="encoder", head="masked", activation="relu", norm_epsilon=1e-9))
    head.dense.weight.copy_(torch.eye(4))
    head.dense.bias.fill_(1.0)
    assert head.vocabulary.bias is not None
    head.vocabulary.bias.copy_(torch.arange(7.0))
    states = torch.tensor([[[-5.0, -1.0, 1.0, 3.0]]])
    normed = torch.tensor([0.0, 0.0, 2.0, 4.0])  # after the ReLU: mean 1.5, deviation √2.75
    normed = (normed - 1.5) / 2.75**0.5
    embedding = torch.randn(7, 4)
    wanted = embedding @ normed + torch.arange(7.0)
    torch.testing.assert_close(head(states, embedding)[0, 0], wanted)


def test_embedding_head_takes_the_mean_of_real_tokens() -> None:
    states = torch.tensor([[[1.0, 5.0], [3.0, 3.0], [99.0, -99.0]]])
    counts = torch.tensor([2])
    assert EmbeddingHead(unit=False)(states, counts).tolist() == [[2.0, 4.0]]
    wanted = torch.tensor([[2.0, 4.0]]) / 20**0.5
    torch.testing.assert_close(EmbeddingHead()(states, counts), wanted)
    whole = EmbeddingHead(unit=False)(states, None)
    torch.testing.assert_close(whole, states.mean(1))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_classification_head_looks_at_the_first_token(activation: str) -> None:
    head = ClassificationHead(config(kind="encoder", head="classification", classifier=activation))
    states = torch.randn(3, 11, 4)
    hidden = getattr(torch, activation)(head.dense(states[:, 0]))
    torch.testing.assert_close(head(states), head.labels(hidden))
    assert head(states).shape == (3, 5)


def test_encoder_shapes() -> None:
    ids, real = torch.randint(7, (3, 11)), torch.ones(3, 11).bool()
    real[1, :5] = False
    shapes = {
        "none": (3, 11, 4), "masked": (3, 11, 7), "embedding": (3, 4), "classification": (3, 5),
    }  # fmt: skip
    for head, shape in shapes.items():
        model = Encoder(config(kind="encoder", head=head)).eval()
        assert model(ids).shape == shape
        assert model(ids, real=real).shape == shape


def test_sentence_embeddings_ignore_padding_and_neighbours() -> None:
    model = Encoder(config(kind="encoder", head="embedding")).eval()
    ids, real = torch.randint(7, (3, 11)), torch.ones(3, 11).bool()
    real[0, 4:], real[1, :5] = False, False
    got = model(ids, real=real)
    torch.testing.assert_close(got.norm(dim=1), torch.ones(3))
    for row in range(3):
        torch.testing.assert_close(got[row], model(ids[row][real[row]][None])[0])
    apart = Encoder(config(kind="encoder", head="embedding", embedding_unit=False)).eval()
    assert not torch.allclose(apart(ids).norm(dim=1), torch.ones(3))


def test_decoder_gives_only_the_last_if_asked() -> None:
    model = Decoder(config()).eval()
    ids = torch.randint(7, (3, 11))
    torch.testing.assert_close(model(ids, last_only=True), model(ids)[:, -1:])


def test_encoder_decoder_gives_only_the_last_if_asked() -> None:
    model = EncoderDecoder(config(kind="encoder-decoder", encoder_layers=2)).eval()
    source, target = torch.randint(7, (3, 11)), torch.randint(7, (3, 6))
    real = torch.ones(3, 6).bool()
    real[0, 2:] = False
    states, counts = model.encode(source)
    whole = model.decode(target, states, counts, real=real)
    last = model.decode(target, states, counts, real=real, last_only=True)
    assert last.shape == (3, 1, 7)
    torch.testing.assert_close(last[:, 0], whole[torch.arange(3), torch.tensor([1, 5, 5])])


def test_one_vocabulary_for_source_and_target() -> None:
    model = EncoderDecoder(config(kind="encoder-decoder", encoder_layers=2))
    assert model.decoder.embedding.tokens is model.encoder.embedding.tokens
    names = [name for name, _ in model.named_parameters()]
    assert "encoder.embedding.tokens.weight" in names
    assert "decoder.embedding.tokens.weight" not in names


def test_models_refuse_configs_of_other_kinds() -> None:
    with pytest.raises(ConfigError, match="Encoder wants a config of kind 'encoder'"):
        Encoder(config())
    with pytest.raises(ConfigError, match=r"Decoder wants .* got 'encoder' with 'none'"):
        Decoder(config(kind="encoder", head="none"))
    with pytest.raises(ConfigError, match=r"Decoder wants .* got 'decoder' with 'masked'"):
        Decoder(config(head="masked"))
    with pytest.raises(ConfigError, match=r"EncoderDecoder wants .* got 'decoder'"):
        EncoderDecoder(config())
    with pytest.raises(ConfigError, match=r"EncoderDecoder wants .* with 'masked'"):
        EncoderDecoder(config(kind="encoder-decoder", encoder_layers=1, head="masked"))


def test_segments_are_checked(unchecked: None) -> None:
    ids = torch.randint(7, (2, 5))
    without = Encoder(config(kind="encoder", head="none"))
    with pytest.raises(InputError, match="this model has no segments"):
        without(ids, segments=torch.zeros_like(ids))
    model = Encoder(config(kind="encoder", head="none", segments=2))
    with pytest.raises(InputError, match="segments must be whole numbers from 0 to 1; got 2"):
        model(ids, segments=torch.arange(5).clamp(max=2).expand(2, 5))
    with pytest.raises(ShapeError, match=r"entry for each token, \(2, 5\); got \(2, 4\)"):
        model(ids, segments=torch.zeros(2, 4).long())

"""Folders with tiny models, for the commands that run one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

TEXT = "the students opened their books and their minds and the door 😀 naïve"
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] + ': ' + message['content'] + '\n' }}"
    "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


@pytest.fixture(scope="session")
def decoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder with random weights, a tokenizer and a chat template."""
    return random_decoder(tmp_path_factory.mktemp("models") / "decoder", eos=(2,))


@pytest.fixture(scope="session")
def endless_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same without a token that ends a text: it writes until somebody stops it."""
    return random_decoder(tmp_path_factory.mktemp("models") / "endless", eos=())


def random_decoder(folder: Path, eos: tuple[int, ...]) -> Path:
    import clearhead as ch
    from clearhead.text.subwords.training import train_bpe

    tokenizer = train_bpe([TEXT] * 3, 300)
    tokenizer.chat_template = TEMPLATE
    torch.manual_seed(5)
    config = ch.ModelConfig(
        kind="decoder", family="llama", vocab=300, context=211, model=24, layers=2, heads=4,
        kv_heads=2, feed_forward=31, gated=True, bos=1, eos=eos, tied=False,
    )  # fmt: skip
    model = ch.Decoder(config).eval().requires_grad_(False)
    return ch.save(model, folder, tokenizer)


@pytest.fixture(scope="session")
def translator_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encoder-decoder with random weights and a tokenizer."""
    import clearhead as ch
    from clearhead.text.subwords.training import train_bpe

    tokenizer = train_bpe([TEXT] * 3, 300, add_eos=True)
    torch.manual_seed(5)
    config = ch.ModelConfig(
        kind="encoder-decoder", family="t5", vocab=300, context=512, model=24, layers=2,
        encoder_layers=1, heads=4, feed_forward=31, positions="relative", attention_scale=1.0,
        activation="relu", norm_epsilon=1e-6, tied=False, eos=(2,), pad=0, start=0, bos=None,
    )  # fmt: skip
    model = ch.EncoderDecoder(config).eval().requires_grad_(False)
    return ch.save(model, tmp_path_factory.mktemp("models") / "translator", tokenizer)

"""Training encoders further: masked tokens of texts, pairs of sentences."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tokenizers
import torch
import transformers

import clearhead as ch
from clearhead.errors import ConfigError, InputError
from clearhead.models.config import Head
from clearhead.training.events import Finished, Validated
from tests.training.conftest import WORDS

GIVEN: dict[str, Any] = {"steps": 4, "settings": {"batch_tokens": 256, "validate_every": 2}}
PAIRS = [(f"{a} {b} {c}", f"{b} {c} {a}") for a in WORDS for b in WORDS[:3] for c in WORDS[3:5]]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """BERTs with a tokenizer of whole words, as transformers saves them."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {word: n for n, word in enumerate([*specials, *WORDS, ".", ","])}
    raw = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    raw.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    raw.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{name.lower()}_token": f"[{name}]" for name in ("PAD", "UNK", "CLS", "SEP", "MASK")}
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=raw, **names)
    config = transformers.BertConfig(
        vocab_size=len(vocabulary), hidden_size=12, intermediate_size=10, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=23,
    )  # fmt: skip
    made = {}
    for head, kind in (("masked", "BertForMaskedLM"), ("none", "BertModel"),
                       ("classification", "BertForSequenceClassification")):  # fmt: skip
        folder = tmp_path_factory.mktemp("bert") / head
        torch.manual_seed(3)
        getattr(transformers, kind)(config).save_pretrained(folder)
        fast.save_pretrained(folder)
        made[head] = folder
    loaded = ch.load(made["none"])
    embedding = ch.Encoder(loaded.config.changed(head="embedding"))
    embedding.load_state_dict(loaded.model.state_dict())
    made["embedding"] = ch.save(embedding, folder.parent / "embedding", loaded.tokenizer)
    return made


@pytest.mark.filterwarnings("ignore::clearhead.errors.UnreadWarning")
@pytest.mark.parametrize("lora", [None, 2])
@pytest.mark.parametrize(
    ("head", "pairs"), [("masked", False), ("none", True), ("embedding", True)]
)
def test_a_run(
    folders: dict[str, Path], text_file: Path, tmp_path: Path, head: Head, pairs: bool,
    lora: int | None,
) -> None:  # fmt: skip
    texts: Any = PAIRS if pairs else text_file
    given = GIVEN | {"settings": GIVEN["settings"] | {"learning_rate": 3e-3}}
    events = list(ch.train(texts, out=tmp_path / "run", start_from=folders[head], pairs=pairs,
                           lora=lora, **given))  # fmt: skip
    validated = [event.loss for event in events if isinstance(event, Validated)]
    assert isinstance(events[-1], Finished)
    assert len(validated) == 3 and events[-1].loss == min(validated)
    loaded = ch.load(tmp_path / "run")
    assert loaded.config.head == head
    assert loaded.config.dropout == 0.1  # BERT's own
    last = list(ch.train(out=tmp_path / "run", resume=True, steps=6))[-1]
    assert isinstance(last, Finished) and last.step == 6


@pytest.mark.filterwarnings("ignore::clearhead.errors.UnreadWarning")
@pytest.mark.parametrize(
    ("head", "pairs", "message"),
    [
        ("none", False, "this one has no head for that: its head is 'none'"),
        ("classification", False, "its head is 'classification'"),
        ("masked", True, "the head of this one is 'masked'"),
        ("classification", True, "the head of this one is 'classification'"),
    ],
)
def test_heads_that_do_not_fit(
    folders: dict[str, Path], text_file: Path, tmp_path: Path, head: Head, pairs: bool,
    message: str,
) -> None:  # fmt: skip
    texts: Any = PAIRS if pairs else text_file
    with pytest.raises(InputError, match=message):
        list(ch.train(texts, out=tmp_path / "run", start_from=folders[head], pairs=pairs, steps=1))
    assert not (tmp_path / "run").exists()


@pytest.mark.filterwarnings("ignore::clearhead.errors.UnreadWarning")
def test_accumulation_is_refused_for_pairs(folders: dict[str, Path], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="accumulation changes nothing here"):
        list(ch.train(PAIRS, out=tmp_path / "run", start_from=folders["none"], pairs=True, steps=1,
                      settings={"accumulation": 2}))  # fmt: skip

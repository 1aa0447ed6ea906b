"""What nobody knows is listed, in one warning and in ``loaded.unread``, whatever it came from."""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch

import clearhead as ch
from clearhead.errors import CheckpointError, UnreadWarning
from tests.shared.config_fields import KINDS
from tests.shared.gguf_models import write_gguf
from tests.shared.tiny_models import assert_same

pytestmark = pytest.mark.usefixtures("quiet_transformers", "one_thread")
UNKNOWN = {"colour": "red", "attention_temperature": 3.5}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kind = KINDS["llama"]
    place = tmp_path_factory.mktemp("unread") / "tiny"
    return kind.save(kind.reference(kind.raw()), kind.raw(**UNKNOWN), place)


@pytest.mark.parametrize("file", ["", "model.safetensors"])
def test_a_folder_and_a_file_in_it(folder: Path, file: str) -> None:
    with pytest.warns(UnreadWarning, match=r"nobody here knows, 2 of them: colour, attention_te"):
        loaded = ch.load(folder / file)
    assert loaded.unread == tuple(UNKNOWN)


def test_a_model_of_transformers() -> None:
    kind = KINDS["llama"]
    theirs = kind.reference(kind.raw(**UNKNOWN))
    with pytest.warns(UnreadWarning, match="colour"):
        assert set(ch.load(theirs).unread) == set(UNKNOWN)


@pytest.mark.parametrize("name", KINDS)
def test_known_models_have_nothing_unread(name: str, tmp_path: Path) -> None:
    """As transformers writes and has them, and as we write them."""
    kind = KINDS[name]
    theirs = kind.reference(kind.raw())
    theirs.save_pretrained(tmp_path / "theirs")
    loaded = ch.load(tmp_path / "theirs")
    saved = ch.load(ch.save(loaded.model, tmp_path / "ours"))
    assert loaded.unread == saved.unread == ch.load(theirs).unread == ()


def test_a_gguf_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gguf.GGUFWriter, "add_name", add_unknown_keys)
    path = write_gguf(KINDS["llama"].reference(KINDS["llama"].raw()), tmp_path / "a.gguf", "llama")
    wanted = ("llama.colour", "weather")
    with pytest.warns(UnreadWarning, match=r"llama\.colour, weather"):
        assert ch.load(path).unread == wanted
    with pytest.warns(UnreadWarning):
        assert ch.load(tmp_path).unread == wanted


def add_unknown_keys(writer: gguf.GGUFWriter, name: str) -> None:
    writer.add_string("general.name", name)
    writer.add_string("llama.colour", "red")
    writer.add_uint32("weather", 7)


def test_the_next_sentence_head_is_listed(tmp_path: Path) -> None:
    import transformers

    torch.manual_seed(0)
    theirs = transformers.BertForPreTraining(transformers.BertConfig(**KINDS["bert"].fields)).eval()
    theirs.save_pretrained(tmp_path)
    names = ("cls.seq_relationship.weight", "cls.seq_relationship.bias")
    ids = KINDS["bert"].inputs()[0]
    for given in (tmp_path, theirs):
        with pytest.warns(UnreadWarning, match=r"cls\.seq_relationship\."):
            loaded = ch.load(given)
        assert set(loaded.unread) == set(names)
        assert_same(loaded.model(ids), theirs(ids).prediction_logits)


def test_names_out_of_a_file_are_harmless_to_a_terminal(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    hostile: dict[str, Any] = {"\x1b[2Jgone": 1, "line\nbreak": 2, "x" * 5000: 3}
    many = {f"field{number}": number for number in range(1000)}
    fields = json.loads((folder / "config.json").read_text())
    (tmp_path / "copy" / "config.json").write_text(json.dumps(fields | hostile | many))
    with pytest.warns(UnreadWarning) as caught:
        loaded = ch.load(tmp_path / "copy")
    text = str(caught[0].message)
    assert len(caught) == 1
    assert "\x1b" not in text and "\n" not in text and len(text) < 1500
    assert "?[2Jgone" in text and "and 985 more" in text
    assert len(loaded.unread) == 1005


def test_a_warning_can_be_made_an_error(folder: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UnreadWarning)
        with pytest.raises(UnreadWarning) as caught:
            ch.load(folder)
    assert caught.value.unread == tuple(UNKNOWN)


def test_a_class_of_the_users_own_is_the_one_it_is_made_from() -> None:
    import transformers

    class Mine(transformers.LlamaForCausalLM):  # type: ignore[misc]
        pass

    kind = KINDS["llama"]
    theirs = Mine(transformers.LlamaConfig(**kind.fields)).eval()
    assert_same(ch.load(theirs).model(*kind.inputs()), kind.theirs(theirs))


@pytest.mark.parametrize("name", KINDS)
def test_refused_whatever_it_comes_from(name: str, tmp_path: Path) -> None:
    """Folders, single files and models in memory follow the same rules."""
    kind = KINDS[name]
    theirs = kind.reference(kind.raw())
    packed = {"quant_method": "gptq", "bits": 4}
    kind.save(theirs, kind.raw(quantization_config=packed), tmp_path)
    theirs.config.quantization_config = packed
    for given in (tmp_path, tmp_path / "model.safetensors", theirs):
        with pytest.raises(CheckpointError, match=r"quantization_config is .*gptq"):
            ch.load(given)

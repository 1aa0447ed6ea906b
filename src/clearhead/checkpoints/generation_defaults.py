"""How a model's files want texts to be generated: generation_config.json, GGUF metadata."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from clearhead.checkpoints.description import description_errors
from clearhead.checkpoints.generation_fields import (
    GGUF_ENDS,
    GGUF_HARMLESS,
    GGUF_READ,
    GGUF_REFUSED,
    HARMLESS,
    READ,
    REFUSED,
    SAMPLING_ONLY,
    read_fields,
    refused_fields,
    tokens,
)
from clearhead.files.json_file import read_json

FILE = "generation_config.json"
GGUF_SAMPLING = "general.sampling."
# A file that says do_sample: true leaves out what equals these values: they belong to the format.
SAMPLED = {"temperature": 1.0, "top_k": 50}
SAMPLING_NAMES = ("temperature", "top_k", "top_p", "min_p", "typical")
SPECIAL_TOKENS = frozenset({"bos", "eos", "start"})


@dataclass(frozen=True, kw_only=True)
class GenerationDefaults:
    """The settings for generation that a model's files give. None and () mean: not given.

    ``generate`` and ``beam_search`` use them wherever the caller gives nothing.

    >>> GenerationDefaults.of({"do_sample": True, "top_p": 0.9, "eos_token_id": [2, 7]})
    GenerationDefaults(eos=(2, 7), temperature=1.0, top_k=50, top_p=0.9)
    """

    source: str = ""  # the file, for error texts
    bos: int | None = None
    eos: tuple[int, ...] = ()
    start: int | None = None  # the first token of an encoder-decoder's decoder
    forced_first: int | None = None  # the token after the start
    forced_last: tuple[int, ...] = ()  # the token at the maximum length
    max_tokens: int | None = None
    max_length: int | None = None  # with the prompt, or the decoder's start token
    min_tokens: int | None = None
    min_length: int | None = None  # with the prompt, or the decoder's start token
    stop: tuple[str, ...] = ()
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    typical: float | None = None
    repetition_penalty: float | None = None
    no_repeat_ngram_size: int | None = None
    bad_words: tuple[tuple[int, ...], ...] = ()
    suppressed: tuple[int, ...] = ()
    suppressed_first: tuple[int, ...] = ()  # as the first token of the text only
    beams: int | None = None
    length_penalty: float | None = None
    early_stopping: bool | str | None = None
    renormalise: bool | None = None  # beam search: make probabilities sum to 1 after penalties
    refused: tuple[tuple[str, str], ...] = ()  # names and values of what is not offered
    unread: tuple[str, ...] = ()  # fields that nobody knows
    content: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)  # as read

    def __repr__(self) -> str:
        """The fields that the files give."""
        values = [(each.name, getattr(self, each.name)) for each in fields(self) if each.repr]
        given = [f"{name}={value!r}" for name, value in values if value != getattr(_NONE, name)]
        return f"GenerationDefaults({', '.join(given)})"

    def as_fields(self) -> dict[str, Any]:
        """The content of a generation_config.json that says the same; {} if nothing is given.

        What was read from such a file is given back as it was. Keys of a GGUF file that are not
        offered keep their names, so that whoever reads the file is told.

        >>> GenerationDefaults(eos=(2, 7), top_p=0.9).as_fields()
        {'eos_token_id': [2, 7], 'top_p': 0.9}
        """
        if self.content is not None:
            return dict(self.content)
        ours = {file: getattr(self, name, None) for file, (name, _) in READ.items()}
        given = {file: _listed(value) for file, value in ours.items() if value not in (None, ())}
        return given | dict(self.refused) | dict.fromkeys(self.unread)

    @property
    def special_tokens(self) -> GenerationDefaults:
        """These defaults without settings: only the tokens that begin and end texts."""
        return GenerationDefaults(bos=self.bos, eos=self.eos, start=self.start)

    @property
    def limits_length(self) -> bool:
        """True if the files say how long a text may be."""
        return self.max_tokens is not None or self.max_length is not None

    @classmethod
    def of(cls, content: Mapping[str, Any], source: str = "") -> GenerationDefaults:
        """Read the content of a generation_config.json.

        Raises:
            InputError: a field has a wrong type or value.
        """
        found = read_fields(content, READ)
        refused = refused_fields(content, REFUSED)
        samples = found.pop("samples", None)
        if samples is False:  # greedy: filters have no meaning then
            found = {name: found[name] for name in found if name not in SAMPLING_NAMES}
            found["temperature"] = 0.0
            refused = tuple(each for each in refused if each[0] not in SAMPLING_ONLY)
        elif samples:
            found = SAMPLED | found
        if found.get("top_k") == 0:
            found["top_k"] = None
        known = READ.keys() | HARMLESS.keys() | REFUSED.keys()
        unread = tuple(name for name in content if name not in known)
        return cls(source=source, refused=refused, unread=unread, content=dict(content), **found)

    @classmethod
    def of_folder(cls, folder: Path) -> GenerationDefaults:
        """Read a model folder: generation_config.json, or what an older config.json holds of it.

        Raises:
            CheckpointError: a file is broken, or a field has a wrong type or value.
        """
        path = folder / FILE
        if path.exists():
            return cls._checked(read_json(path), path)
        path = folder / "config.json"
        return cls._checked(legacy_fields(read_json(path)), path) if path.exists() else cls()

    @classmethod
    def of_transformers(cls, model: object) -> GenerationDefaults:
        """Read the ``generation_config`` of a transformers model, if it has one."""
        config: Any = getattr(model, "generation_config", None)
        if not hasattr(config, "to_diff_dict"):
            return cls()
        return cls._checked(config.to_diff_dict(), "the model's generation_config")

    @classmethod
    def of_gguf(cls, metadata: Mapping[str, Any], source: str | Path = "") -> GenerationDefaults:
        """Read the end tokens and the keys ``general.sampling.*`` of a GGUF file.

        Raises:
            CheckpointError: a value has a wrong type or value.
        """
        with description_errors(source):
            return cls(source=str(source), eos=_gguf_ends(metadata), **_gguf_sampling(metadata))

    @classmethod
    def _checked(cls, content: Mapping[str, Any], source: Path | str) -> GenerationDefaults:
        with description_errors(source):
            return cls.of(content, source.name if isinstance(source, Path) else source)


_NONE = GenerationDefaults()


def _listed(value: Any) -> Any:
    return [_listed(each) for each in value] if isinstance(value, tuple) else value


def legacy_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """The settings for generation in a config.json, where older folders have them.

    Its special tokens are left to the family, which reads them as well.
    """
    special = {field for field, (name, _) in READ.items() if name in SPECIAL_TOKENS}
    wanted = (READ.keys() | REFUSED.keys()) - special
    return {name: value for name, value in config.items() if name in wanted}


def _gguf_ends(metadata: Mapping[str, Any]) -> tuple[int, ...]:
    names = [f"tokenizer.ggml.{name}_token_id" for name in GGUF_ENDS]
    given = [tokens(name, metadata[name]) for name in names if metadata.get(name) is not None]
    return tuple(dict.fromkeys(id for ids in given for id in ids))


def _gguf_sampling(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """llama.cpp's values: 0 and below switch temperature and top-k off, 1 and above top-p."""
    content = {
        key.removeprefix(GGUF_SAMPLING): value
        for key, value in metadata.items()
        if key.startswith(GGUF_SAMPLING)
    }
    found = read_fields(content, GGUF_READ, GGUF_SAMPLING)
    refused = refused_fields(content, GGUF_REFUSED)
    last = found.pop("penalty_last_n", -1)  # −1: all tokens, as we count them; 0: no penalty
    if last == 0:
        found.pop("repetition_penalty", None)
    elif last > 0 and found.get("repetition_penalty", 1) != 1:
        refused += (("penalty_last_n", str(last)),)
    if "temperature" in found:
        found["temperature"] = max(0.0, found["temperature"])
    if found.get("top_k", 1) <= 0:
        found["top_k"] = None
    for name in ("top_p", "min_p"):
        if name in found:
            found[name] = min(1.0, max(0.0, found[name]))
    if found.get("top_p") == 0:  # llama.cpp keeps the likeliest token then
        found["top_p"], found["top_k"] = None, 1
    known = GGUF_READ.keys() | GGUF_HARMLESS.keys() | GGUF_REFUSED.keys()
    unread = tuple(GGUF_SAMPLING + name for name in content if name not in known)
    named = tuple((GGUF_SAMPLING + name, value) for name, value in refused)
    return {**found, "refused": named, "unread": unread}

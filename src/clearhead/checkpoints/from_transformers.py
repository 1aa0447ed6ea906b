"""Models and tokenizers that are objects of the ``transformers`` package already.

That package is not a dependency: its objects are recognised by their class, and only their
``config``, their ``state_dict`` and the ``tokenizer.json`` content of a fast tokenizer are read.
"""

from __future__ import annotations

import json
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from clearhead.checkpoints.description import description_errors
from clearhead.checkpoints.weights import model_from_weights, unread_tensors
from clearhead.errors import CheckpointError, InputError
from clearhead.files.json_file import parse_json
from clearhead.models.build import Model
from clearhead.models.families.family import family_of
from clearhead.models.families.field_rules import Fields
from clearhead.text.subwords.file import settings_of
from clearhead.text.subwords.tokenizer import SubwordTokenizer
from clearhead.text.tokenizer import Tokenizer


@runtime_checkable
class FastTokenizer(Protocol):
    """The part of a fast transformers tokenizer that is read."""

    chat_template: Any

    @property
    def backend_tokenizer(self) -> Any:
        """The tokenizer of the ``tokenizers`` package that does the work."""

    @property
    def special_tokens_map(self) -> dict[str, Any]:
        """Special tokens by name: ``bos_token`` and so on."""


def is_transformers_model(given: object) -> bool:
    """Return whether ``given`` is a model of the transformers package, or a subclass of one."""
    packages = {kind.__module__.partition(".")[0] for kind in type(given).__mro__}
    described = hasattr(getattr(given, "config", None), "to_dict")
    return isinstance(given, nn.Module) and "transformers" in packages and described


def model_from_transformers(
    theirs: nn.Module, dtype: torch.dtype | None = None
) -> tuple[Model, tuple[str, ...]]:
    """Return our model with the weights of theirs: the same memory, seen under our names; and the
    names of what is not read.

    Every tensor of the known families is either taken as it is or as a view: GPT-2's matrices are
    transposed views, and its one matrix for query, key and value is seen as three. Nothing is
    copied unless ``dtype`` asks for another type. A change in place is visible on both sides.

    Raises:
        CheckpointError: no family reads a model of this kind; the error lists the known ones. Or
            the weights are not here (meta device), not floating point, or under unknown names.
        InputError: the weights lie on several devices, or have several types and ``dtype`` is not
            given.
    """
    where = f"the transformers model {type(theirs).__name__}"
    fields = _fields(theirs)
    family = family_of(fields, where=where)
    with description_errors(where):
        config, unread = family.read(fields), family.unread(fields)
    weights = _Weights(theirs)
    _check_weights(weights.tensors, where, dtype)
    model = model_from_weights(config, family, weights, where=where, dtype=dtype, views=True)
    return model, (*unread, *unread_tensors(family, weights))


def name_of(theirs: nn.Module) -> str:
    """Return the name that the model was loaded by, or else its class."""
    return getattr(theirs.config, "name_or_path", "") or type(theirs).__name__


def tokenizer_from_transformers(theirs: Tokenizer | FastTokenizer) -> Tokenizer:
    """Return our tokenizer of a fast one of transformers; one of ours comes back as it is.

    Raises:
        InputError: it is neither.
    """
    if isinstance(theirs, Tokenizer):
        return theirs
    backend: Any = getattr(theirs, "backend_tokenizer", None)
    if not hasattr(backend, "to_str"):
        raise InputError(
            "tokenizer must be one of clearhead's, or a fast one of transformers; got "
            f"{type(theirs).__name__}.",
            hint="AutoTokenizer gives fast tokenizers where there is a tokenizer.json.",
        )
    where = f"the transformers tokenizer {type(theirs).__name__}"
    settings = settings_of(
        {**theirs.special_tokens_map, "chat_template": theirs.chat_template}, where=where
    )
    return SubwordTokenizer.from_content(parse_json(backend.to_str()), settings, where=where)


class _Weights:
    """The tensors of a model in memory, read as if they were a file."""

    def __init__(self, theirs: nn.Module) -> None:
        self.tensors: dict[str, Tensor] = theirs.state_dict()

    def names(self) -> list[str]:
        return list(self.tensors)

    def tensor(self, name: str) -> Tensor:
        return self.tensors[name]


def _fields(theirs: nn.Module) -> Fields:
    """The config as its config.json would have it; the class itself says which head there is: the
    one of transformers that a class of the user's own is made from."""
    config: Any = theirs.config
    fields: dict[str, Any] = json.loads(json.dumps(config.to_dict(), default=str))
    packages = ((kind, kind.__module__.partition(".")[0]) for kind in type(theirs).__mro__)
    known = next(kind.__name__ for kind, package in packages if package == "transformers")
    return fields | {"architectures": [known]}


def _check_weights(tensors: dict[str, Tensor], where: str, dtype: torch.dtype | None) -> None:
    devices = {tensor.device for tensor in tensors.values()}
    if any(device.type == "meta" for device in devices):
        raise CheckpointError(f"{where} has weights on the meta device: they are not loaded.")
    if len(devices) > 1:
        names = ", ".join(sorted(map(str, devices)))
        raise InputError(f"{where} has weights on several devices ({names}); wanted is one.")
    types = {tensor.dtype for tensor in tensors.values() if tensor.is_floating_point()}
    if dtype is None and len(types) > 1:
        names = ", ".join(sorted(map(str, types)))
        raise InputError(
            f"{where} has weights of several types ({names}).",
            hint="load(model, dtype=torch.float32) makes copies of one type.",
        )

"""From the tensors of a file to the parameters of a model, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from clearhead.checkpoints.gguf.file import GGUFFile
from clearhead.checkpoints.gguf.quantised import QuantisedTensor
from clearhead.errors import CheckpointError, WeightNamesError
from clearhead.models.build import Model, build
from clearhead.models.config import ModelConfig
from clearhead.models.families.family import Family, Source


@runtime_checkable
class WeightFile(Protocol):
    """The interface of every reader of tensors."""

    def names(self) -> list[str]:
        """Every tensor's name."""

    def tensor(self, name: str) -> Tensor:
        """One tensor."""


def model_from_weights(
    config: ModelConfig,
    family: Family,
    file: WeightFile,
    *,
    where: str,
    dtype: torch.dtype | None,
    views: bool = False,
    quantised: bool = False,
) -> Model:
    """Build the model and put the file's tensors into it; every name must have its place.

    Without ``dtype`` the tensors keep theirs. With ``views`` they share the file's memory even
    where their rows do not lie one after another; else those are copied. With ``quantised`` the
    matrices of a GGUF file stay as they are stored
    (:class:`clearhead.checkpoints.gguf.quantised.QuantisedTensor`).

    Raises:
        WeightNamesError: names are missing or unexpected; it lists all of them.
        CheckpointError: a tensor has another shape than the config says, or is not floating point.
    """
    if config.layers + (config.encoder_layers or 0) > len(file.names()):
        raise CheckpointError(
            f"{where} describes {config.layers + (config.encoder_layers or 0)} layers and holds "
            f"only {len(file.names())} tensors.",
            hint="is config.json the one of these weights?",
        )
    config = _apart_as_in_the_file(config, family, file)
    model = _empty(config, where)
    sources = family.sources(config)
    found = _find(sources, family, file.names(), where)
    _check_constants(family, file, set(found.values()), where)
    state: dict[str, Tensor] = {}
    taken: set[str] = set()
    for ours, shape in _shapes(model).items():
        if ours in found and quantised and len(shape) == 2 and _is_matrix(file, found[ours]):
            state[ours] = _rows_taken(file, found[ours], sources[ours], shape, where)
            continue
        if ours in found:
            tensor = _taken(file, found[ours], sources[ours], shape, where)
        else:  # an optional one: zeros of the type that the others have
            tensor = torch.zeros(shape, dtype=next(iter(state.values())).dtype)
        tensor = tensor if dtype is None else tensor.to(dtype)
        state[ours] = tensor if views else tensor.contiguous()
        if not views and ours in found and sources[ours].parts == 1:
            state[ours] = _own(state[ours], found[ours], taken)
    model.load_state_dict(state, strict=False, assign=True)
    return model.eval().requires_grad_(False)


class _WithoutInitialisation(TorchFunctionMode):
    """Skips the random initialisation of weights on the meta device, which have no memory.

    Otherwise torch would import its compiler first, which takes more than a second.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _INITIALISERS:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


_INITIALISERS = (Tensor.normal_, nn.init.normal_, nn.init.kaiming_uniform_, nn.init.uniform_)


def _empty(config: ModelConfig, where: str) -> Model:
    """Build the model on the meta device: shapes only, no memory, no random numbers."""
    try:
        with torch.device("meta"), _WithoutInitialisation():
            return build(config)
    except RuntimeError as error:
        message = str(error).partition("\n")[0]
        raise CheckpointError(f"{where} describes an impossible model: {message}.") from error


def _own(tensor: Tensor, name: str, taken: set[str]) -> Tensor:
    """The tensor with memory of its own, if another parameter came out of the same place."""
    fresh = name not in taken
    taken.add(name)
    return tensor if fresh else tensor.clone()


def unread_tensors(family: Family, file: WeightFile) -> tuple[str, ...]:
    """The tensors of outputs that we do not compute: a next-sentence head, say."""
    return tuple(name for name in file.names() if family.dropped and name.endswith(family.dropped))


OUTPUTS = ("head.weight", "head.vocabulary.weight")


def _apart_as_in_the_file(config: ModelConfig, family: Family, file: WeightFile) -> ModelConfig:
    """Return the config, untied where the file holds matrices that differ.

    Flan-T5 saved by newer versions of transformers has an output matrix although its config.json
    says tied; and an encoder and a decoder may have embeddings of their own.
    """
    both = config.kind == "encoder-decoder"
    if not config.tied and (not both or not config.shared_embedding):
        return config
    separate = config.changed(tied=False, **({"shared_embedding": False} if both else {}))
    sources, present = family.sources(separate), set(file.names())

    def place(ours: str) -> str | None:
        source = sources.get(ours)
        names = () if source is None else family.places(source)
        return next((name for name in names if name in present), None)

    output = next((place(name) for name in OUTPUTS if name in sources), None)
    tokens = place("decoder.embedding.tokens.weight" if both else "stack.embedding.tokens.weight")
    if config.tied and _differ(file, output, tokens):
        config = config.changed(tied=False)
    encoded = place("encoder.embedding.tokens.weight")
    if both and config.shared_embedding and _differ(file, encoded, tokens):
        config = config.changed(shared_embedding=False)
    return config


def _differ(file: WeightFile, one: str | None, other: str | None) -> bool:
    if one is None or other is None or one == other:
        return False
    return not torch.equal(file.tensor(one), file.tensor(other))


def _check_constants(family: Family, file: WeightFile, used: set[str], where: str) -> None:
    """Refuse tensors that ought to hold what we compute ourselves, and hold something else."""
    for ending, computed in family.constants.items():
        for name in file.names():
            if name in used or not name.endswith(ending):
                continue
            held = file.tensor(name).float()
            if held.ndim != 2 or held.shape[1] % 2 or not _close(held, computed):
                raise CheckpointError(
                    f"{where}: {name} differs from what models of this kind compute in its place.",
                    hint="ch.watch looks into the model as transformers runs it.",
                )


def _close(held: Tensor, computed: Callable[[Tensor], Tensor]) -> bool:
    return torch.allclose(held, computed(held), atol=1e-3)


def _is_matrix(file: WeightFile, name: str) -> bool:
    return isinstance(file, GGUFFile) and len(file.shape(name)) == 2 and file.kind(name) != "F64"


def _rows_taken(
    file: WeightFile, name: str, source: Source, shape: torch.Size, where: str
) -> Tensor:
    """A matrix as it is stored: only the order of its rows may differ."""
    assert isinstance(file, GGUFFile)
    theirs = file.quantised(name)
    order = source.take(torch.arange(len(theirs))[:, None])
    ours = theirs.taken(order.flatten())
    if ours.shape != shape:
        raise _wrong_shape(where, name, ours, shape)
    return ours


def _taken(file: WeightFile, name: str, source: Source, shape: torch.Size, where: str) -> Tensor:
    theirs = file.tensor(name)
    if not theirs.is_floating_point():
        raise CheckpointError(f"{where}: {name} holds {theirs.dtype}; weights are floating point.")
    try:
        tensor = source.take(theirs)
    except (RuntimeError, IndexError):  # not even the number of axes fits
        tensor = theirs
    if tensor.shape != shape:
        raise _wrong_shape(where, name, tensor, shape)
    return tensor


def _wrong_shape(where: str, name: str, tensor: Tensor, shape: torch.Size) -> CheckpointError:
    return CheckpointError(
        f"{where}: {name} gives {tuple(tensor.shape)}; wanted was {tuple(shape)}.",
        hint="is config.json the one of these weights?",
    )


def weights_of(model: Model, family: Family) -> dict[str, Tensor]:
    """Return the model's tensors under the family's names, as a checkpoint of it holds them."""
    parts: dict[str, list[tuple[Source, Tensor]]] = {}
    parameters = dict(model.named_parameters())
    for ours, source in family.sources(model.config).items():
        parameter = parameters[ours].detach()
        held = parameter.floats() if isinstance(parameter, QuantisedTensor) else parameter
        parts.setdefault(source.name, []).append((source, held))
    given: dict[str, Tensor] = {}
    memory: set[int] = set()
    for name, pairs in parts.items():
        ordered = sorted(pairs, key=lambda pair: pair[0].part)
        tensor = pairs[0][0].give([tensor for _, tensor in ordered])
        # Two parameters may share their memory, if the file had one tensor for both.
        given[name] = tensor.clone() if tensor.data_ptr() in memory else tensor
        memory.add(tensor.data_ptr())
    return given


def _shapes(model: Model) -> dict[str, torch.Size]:
    return {name: parameter.shape for name, parameter in model.named_parameters()}


def _find(
    sources: Mapping[str, Source], family: Family, there: list[str], where: str
) -> dict[str, str]:
    """Return the file's name of each of our tensors; bare models leave the prefix out."""
    present, found = set(there), {}
    missing: dict[str, None] = {}
    for ours, source in sources.items():
        name = next((name for name in family.places(source) if name in present), None)
        if name is not None:
            found[ours] = name
        elif not source.optional:
            missing[source.name] = None
    known = {name for source in sources.values() for name in family.places(source)}
    endings = (*family.ignored, *family.dropped, *family.constants)
    unexpected = [
        name for name in there if name not in known and not name.endswith(endings or ("\0",))
    ]
    if missing or unexpected:
        raise WeightNamesError(list(missing), unexpected, where=where)
    return found

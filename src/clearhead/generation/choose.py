"""Which runner: the CPU engine where it serves the model, torch everywhere else."""

from __future__ import annotations

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.runner import Runner
from clearhead.generation.torch_runner import TorchRunner
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder


def runner_for(
    loaded: Loaded, engine: bool | None = None, *, sources: list[list[int]] | None = None
) -> Runner:
    """A fresh runner for one batch; ``sources`` are what an encoder-decoder model reads.

    ``engine`` is chosen by itself unless given: True insists on the CPU engine, False on torch.
    """
    model = writer(loaded)
    if engine is not False:
        fast = _engine_runner(loaded, sources)
        if fast is not None:
            return fast
    if engine:
        raise InputError(
            f"the CPU engine does not serve {loaded.name} as it is (device, number format or "
            "a setting of its config).",
            hint="leave engine=… out: torch runs it with the same results.",
        )
    if next(model.parameters()).is_meta:
        raise InputError(
            f"the float32 weights of {loaded.name} were let go when its CPU engine was made; "
            "torch cannot run it any more.",
            hint="load the model anew, or leave engine=False out.",
        )
    return TorchRunner(model, sources)


def writer(loaded: Loaded) -> Decoder | EncoderDecoder:
    """The model, if it can say which token comes next."""
    if isinstance(loaded.model, Encoder):
        raise InputError(
            f"{loaded.name} has no language-model head: it is an encoder with the head "
            f"{loaded.config.head!r}, and cannot say which token comes next.",
            hint="generation wants a decoder or encoder-decoder, such as smollm2.",
        )
    return loaded.model


def _engine_runner(loaded: Loaded, sources: list[list[int]] | None) -> Runner | None:
    """The engine's runner; None where it does not serve the model."""
    from clearhead.generation.engine_runner import EngineRunner, engine_supports

    if not engine_supports(loaded):
        return None
    runner: Runner = EngineRunner.of(loaded, sources)
    return runner

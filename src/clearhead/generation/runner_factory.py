"""Makes a runner for a model: the CPU engine if it supports the model, torch otherwise."""

from __future__ import annotations

from clearhead.arguments import flag
from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError, NotFiniteError
from clearhead.generation.runner import Runner
from clearhead.generation.sound_logits import unsound
from clearhead.generation.torch_runner import TorchRunner
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder


def make_runner(
    loaded: Loaded, engine: bool | None = None, *, sources: list[list[int]] | None = None
) -> Runner:
    """Make a runner with an empty cache, for one batch.

    Args:
        loaded: a decoder or encoder-decoder model.
        engine: True requires the CPU engine, False torch; None takes the engine if it supports
            the model.
        sources: token ids that an encoder-decoder model reads, one list for each row.

    Raises:
        InputError: the model is an encoder, or the required runner cannot run it.
    """
    model = generative_model(loaded)
    engine = None if engine is None else flag("engine", engine)
    if engine is not False:
        runner = _make_engine_runner(loaded, sources)
        if runner is not None:
            return runner
    if engine:
        from clearhead.engine.runner import torch_reason

        reason = torch_reason(loaded) or "its kernels do not run here"
        raise InputError(
            f"the CPU engine does not support {loaded.name} as it is: {reason}.",
            hint="leave engine=… out: torch runs it with the same results.",
        )
    if next(model.parameters()).is_meta:
        raise InputError(
            f"the float32 weights of {loaded.name} were freed when its CPU engine was made; "
            "torch cannot run it any more.",
            hint="load the model again, or leave engine=False out.",
        )
    return TorchRunner(model, sources)


def generative_model(loaded: Loaded) -> Decoder | EncoderDecoder:
    """Return the model if it predicts next tokens; raise an InputError if it is an encoder."""
    if not isinstance(loaded, Loaded):
        raise InputError(
            f"loaded must be a model from clearhead.load; got {type(loaded).__name__}.",
            hint='loaded = clearhead.load("smollm2")',
        )
    if isinstance(loaded.model, Encoder):
        raise InputError(
            f"the loaded model {loaded.name} has no language-model head: it is an encoder with "
            f"the head {loaded.config.head!r}, and does not predict next tokens.",
            hint="generation needs a decoder or encoder-decoder, such as smollm2.",
        )
    return loaded.model


def _make_engine_runner(loaded: Loaded, sources: list[list[int]] | None) -> Runner | None:
    """Make the engine's runner; None if the engine does not support the model."""
    from clearhead.engine.runner import EngineRunner, engine_supports

    if not engine_supports(loaded):
        return None
    try:
        runner: Runner = EngineRunner.of(loaded, sources)
    except NotFiniteError as error:  # an encoder, which torch runs, computed NaN
        raise unsound() from error
    return runner

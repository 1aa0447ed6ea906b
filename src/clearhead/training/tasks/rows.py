"""How many tokens a row has, and how many batches a validation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from clearhead.errors import InputError
from clearhead.models.config import ModelConfig
from clearhead.training.data.batches.batch import Batch
from clearhead.training.settings import TrainingSettings

Kind = TypeVar("Kind", bound=Batch)


def row_length(config: ModelConfig, settings: TrainingSettings, tokens: int) -> int:
    """How many tokens a row has: ``row``, else as many as the context and a batch hold."""
    if settings.row is not None and settings.row > config.context:
        raise InputError(
            f"a row of {settings.row} tokens is longer than the model's context of "
            f"{config.context}.",
            hint="--set row= (settings={'row': …}) of at most the context.",
        )
    wanted = settings.batch_tokens if settings.row is None else settings.row
    return min(config.context, wanted, tokens - 1)


def validated_on(batches: Sequence[Kind], settings: TrainingSettings) -> Sequence[Kind]:
    """The batches of a validation: all, or evenly spaced ones of ``validation_tokens`` together.

    At least one is taken, and every part of the held-out texts has its turn. Batches may be made
    only when they are asked for: how many tokens each has is judged by the first.
    """
    most = settings.validation_tokens
    if most is None or not batches:
        return batches
    count = max(1, most // max(1, batches[0].tokens))
    if count >= len(batches):
        return batches
    return [batches[(2 * number + 1) * len(batches) // (2 * count)] for number in range(count)]

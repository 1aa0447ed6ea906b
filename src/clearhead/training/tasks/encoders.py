"""Tasks of encoders that are trained further: masked tokens of texts, or pairs of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from clearhead.errors import ConfigError, InputError
from clearhead.models.encoder import Encoder
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.batches.masked import (
    Documents,
    MaskedBatches,
    Masking,
    masked_in_order,
)
from clearhead.training.data.batches.pairs import Pair
from clearhead.training.data.batches.sentences import SentenceBatches, sentences_in_order
from clearhead.training.data.tokens.file import TokenFile
from clearhead.training.objectives import MaskedToken, MatchingSentences
from clearhead.training.settings import TrainingSettings
from clearhead.training.tasks.rows import row_length
from clearhead.training.tasks.task import Task


def check_masked(model: Encoder) -> None:
    """Refuse an encoder without a head for masked tokens."""
    if model.config.head == "masked":
        return
    pairs = model.config.head in ("none", "embedding")
    raise InputError(
        "texts train an encoder to predict masked tokens, and this one has no head for that: "
        f"its head is {model.config.head!r}.",
        hint="load a model of the kind ForMaskedLM"
        + ("; or train on pairs of sentences: --pairs (pairs=True)." if pairs else "."),
    )


def masked_task(
    model: Encoder,
    tokenizer: Tokenizer,
    documents: tuple[Documents, Documents],
    settings: TrainingSettings,
    device: torch.device,
) -> Task:
    """Train on masked tokens; ``documents`` are those to train on and to validate on, as ids.

    Raises:
        InputError: the encoder has no head for masked tokens, or no mask token.
    """
    check_masked(model)
    masking = Masking.of(tokenizer, model.config.vocab)
    learned, tried = map(TokenFile.of, documents)
    row = row_length(model.config, settings, learned.total + 3)
    rows: dict[str, int] = {"row": row, "batch_tokens": settings.batch_tokens}
    return Task(
        model.to(device), tokenizer,
        MaskedBatches(learned, masking, seed=settings.seed, **rows),
        masked_in_order(tried, masking, seed=settings.seed, **rows),
        tokens=(learned.total, tried.total), objective=MaskedToken(model),
    )  # fmt: skip


def sentence_task(
    model: Encoder,
    tokenizer: Tokenizer,
    pairs: tuple[Sequence[tuple[str, str]], Sequence[tuple[str, str]]],
    settings: TrainingSettings,
    device: torch.device,
) -> tuple[Task, Any]:
    """Train on pairs of sentences that belong together, for embeddings.

    Raises:
        InputError: the encoder gives no embeddings.
        ConfigError: ``accumulation`` is set.
    """
    if model.config.head not in ("embedding", "none"):
        raise InputError(
            "pairs of sentences train an encoder that gives embeddings; the head of this one is "
            f"{model.config.head!r}."
        )
    if settings.accumulation > 1:
        raise ConfigError(
            "accumulation changes nothing here: the pairs of a batch are compared with each other, "
            "so a batch is computed in one piece.",
            hint="leave it out, or lower batch_tokens.",
        )
    most = model.config.context if settings.row is None else settings.row
    learned, tried = ([_cut(pair, tokenizer, most) for pair in part] for part in pairs)
    rows = {"batch_tokens": settings.batch_tokens, "pad": model.config.pad or 0}
    task = Task(
        model.to(device), tokenizer,
        SentenceBatches(learned, seed=settings.seed, **rows),
        sentences_in_order(tried, **rows),
        tokens=(_tokens(learned), _tokens(tried)), objective=MatchingSentences(model),
    )  # fmt: skip
    return task, (learned, tried)


def _cut(pair: tuple[str, str], tokenizer: Tokenizer, most: int) -> Pair:
    """Both sentences as ids; a long one loses its end, but not its last, special token."""
    first, second = (tokenizer.encode(text) for text in pair)
    return tuple(ids if len(ids) <= most else [*ids[: most - 1], ids[-1]]
                 for ids in (first, second))  # type: ignore[return-value]  # fmt: skip


def _tokens(pairs: Sequence[Pair]) -> int:
    return sum(len(first) + len(second) for first, second in pairs)

"""The task of a chat model that is trained further: the answers of chats, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.generation.generate import generate
from clearhead.models.decoder import Decoder
from clearhead.text.chat.template import ChatTemplate
from clearhead.text.tokenizer import Tokenizer
from clearhead.training.data.batches.chats import ChatBatches, chats_in_order
from clearhead.training.data.chats import ANSWERS, Example, examples_of
from clearhead.training.data.source import Chat
from clearhead.training.data.text_pairs import held_out_pairs
from clearhead.training.objectives import NextToken
from clearhead.training.settings import TrainingSettings
from clearhead.training.tasks.rows import row_length
from clearhead.training.tasks.task import Task

WRITTEN = 60  # tokens of a sample


def held_out_chats(chats: Sequence[Chat], share: float, seed: int) -> tuple[list[Chat], list[Chat]]:
    """Chats to train on and to validate on; copies of one are on one side.

    Raises:
        InputError: there are fewer than two different chats.
    """
    texts = [(json.dumps(chat, sort_keys=True), "") for chat in chats]
    if len(set(texts)) < 2:
        raise InputError(
            "at least two different chats are needed: one to train on, one to validate on."
        )
    training, _ = held_out_pairs(texts, share, seed)
    kept = {text for text, _ in training}
    sides = [text in kept for text, _ in texts]
    return (
        [chat for chat, learned in zip(chats, sides, strict=True) if learned],
        [chat for chat, learned in zip(chats, sides, strict=True) if not learned],
    )


def chat_task(
    model: Decoder,
    tokenizer: Tokenizer,
    chats: tuple[Sequence[Chat], Sequence[Chat]],
    settings: TrainingSettings,
    device: torch.device,
) -> tuple[Task, Any]:
    """Train on the answers of chats; ``chats`` are those to train on and to validate on.

    Raises:
        InputError: the model has no chat template, or it cannot tell what the answers are.
    """
    template = ChatTemplate.of(tokenizer)
    ends = {
        *model.config.eos,
        *([] if tokenizer.specials.eos is None else [tokenizer.specials.eos]),
    }
    learned, tried = (
        [example for chat in part for example in examples_of(chat, template, tokenizer, ends)]
        for part in chats
    )
    longest = max(len(example.ids) for example in (*learned, *tried))
    row = min(row_length(model.config, settings, 1 << 62), max(longest, settings.batch_tokens))
    rows = {"row": row, "batch_tokens": settings.batch_tokens}
    task = Task(
        model.to(device), tokenizer,
        ChatBatches(learned, seed=settings.seed, **rows), chats_in_order(tried, **rows),
        _sampler(model, tokenizer, template, chats[1][0], settings.seed),
        (_answered(learned), _answered(tried)), objective=NextToken(model),
        notes=_notes(learned, tried, row),
    )  # fmt: skip
    return task, (learned, tried)


def _answered(examples: Sequence[Example]) -> int:
    return sum(sum(example.learned) for example in examples)


def _notes(learned: Sequence[Example], tried: Sequence[Example], row: int) -> tuple[str, ...]:
    cut = sum(len(example.ids) > row + 1 for example in (*learned, *tried))
    if not cut:
        return ()
    return (
        f"{cut} chats are longer than a row of {row} tokens: their beginnings are left out. "
        "Longer rows: --set row= (settings={'row': …}).",
    )


def _sampler(
    model: Decoder, tokenizer: Tokenizer, template: ChatTemplate, chat: Chat, seed: int
) -> Callable[[], tuple[str, str]]:
    place = next(number for number, message in enumerate(chat) if message["role"] == ANSWERS)
    asked = str(chat[place - 1].get("content", "")) if place else ""
    prompt = template.render(chat[:place], add_generation_prompt=True) if place else ""
    ids = tokenizer.encode(prompt, special=False)[-model.config.context // 2 :]

    def sample() -> tuple[str, str]:
        loaded = Loaded("the model in training", Path(), model, model.config, tokenizer)
        events = generate(
            loaded, ids, max_tokens=max(1, min(WRITTEN, model.config.context - len(ids))),
            temperature=0.8, seed=seed, engine=False,
        )  # fmt: skip
        return asked, "".join(event.text for event in events)

    return sample

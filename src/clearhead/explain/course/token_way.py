"""The way of one token through all layers: states, q, k, v, heads, W_O, feed-forward, logits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from clearhead.checkpoints.load import Loaded
from clearhead.explain.course.packed import packed, rounded
from clearhead.explain.course.tokens import tokenizer_of
from clearhead.explain.make_look import evaluating
from clearhead.explain.predictions import logit_chunks
from clearhead.explain.why.target import token_text
from clearhead.trace.exact import ExactHead
from clearhead.trace.watching.watch import watch

TOP = 8  # likeliest tokens after each layer


def token_way(loaded: Loaded, text: str) -> dict[str, Any]:
    """What each layer computes for the last token of a text."""
    tokens = tokenizer_of(loaded).tokens(text)
    ids = torch.tensor([[token.id for token in tokens]])
    stack: Any = loaded.model.stack
    with _Kept(stack) as kept, watch(loaded, values=True) as seen, evaluating(loaded):
        logits = loaded.model(ids, last_only=True)[0, -1].float()
    layers = []
    for number, facts in enumerate(seen.layers):
        record = seen[facts.name].record
        assert record.value is not None  # kept by this watch
        block = kept.of(number)
        layers.append(
            {
                "numbers": packed(
                    record.query[0, :, -1], record.key[0], record.value[0],
                    block["attention"], block["hidden"], block["feed_forward"],
                ),
                "top": _top(loaded, stack.norm, block["after"]),
            }
        )  # fmt: skip
    first = seen[seen.layers[0].name].record
    return {
        "text": text,
        "tokens": [token.text.strip() or token.text for token in tokens],
        "heads": int(first.query.shape[1]),
        "kv_heads": int(first.key.shape[1]),
        "group": int(first.query.shape[1] // first.key.shape[1]),
        "key_dim": int(first.query.shape[3]),
        "value_dim": first.facts.value_dim,
        "model": int(kept.entered.shape[-1]),
        "hidden": int(kept.of(0)["hidden"].shape[-1]),
        "scale": ExactHead(first, 0, 0).scale,
        "embedding": packed(kept.entered),
        "layers": layers,
        "final": packed(kept.of(len(layers) - 1)["after"]),
        "logits": rounded(logits.topk(TOP).values),
        "proof": str(seen.verify()),
    }


def _top(loaded: Loaded, norm: nn.Module | None, state: Tensor) -> list[list[Any]]:
    """The likeliest tokens if the output head read this state."""
    with evaluating(loaded):
        normed = (state if norm is None else norm(state))[None]
    ((_, logits),) = logit_chunks(loaded, normed)
    shares, ids = logits[0].softmax(dim=0).topk(TOP)
    return [
        [token_text(loaded, id), round(share, 6)]
        for id, share in zip(ids.tolist(), shares.tolist(), strict=True)
    ]


class _Kept:
    """What the parts of each block give for the last token, while a model runs."""

    def __init__(self, stack: Any) -> None:
        self.stack, self.found, self.handles = stack, {}, []  # type: ignore[var-annotated]

    def __enter__(self) -> _Kept:
        for number, block in enumerate(self.stack.blocks):
            parts = {"attention": block.attention, "feed_forward": block.feed_forward}
            for name, part in {**parts, "after": block}.items():
                self._hook(part, (number, name))
            down = block.feed_forward.down
            self.handles.append(down.register_forward_pre_hook(self._keep_input(number)))
        self._hook(self.stack.embedding, (0, "embedding"))
        return self

    def __exit__(self, *error: object) -> None:
        for handle in self.handles:
            handle.remove()

    def _hook(self, module: nn.Module, place: tuple[int, str]) -> None:
        def keep(_module: nn.Module, _given: Any, output: Any) -> None:
            whole = output[0] if isinstance(output, tuple) else output
            self.found[place] = whole.reshape(-1, whole.shape[-1])[-1].detach().clone()

        self.handles.append(module.register_forward_hook(keep))

    def _keep_input(self, number: int) -> Any:
        def keep(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
            self.found[number, "hidden"] = given[0].reshape(-1, given[0].shape[-1])[-1].clone()

        return keep

    @property
    def entered(self) -> Tensor:
        """The embedding of the last token."""
        found: Tensor = self.found[0, "embedding"]
        return found

    def of(self, number: int) -> dict[str, Tensor]:
        """What was kept of one block."""
        return {name: kept for (layer, name), kept in self.found.items() if layer == number}

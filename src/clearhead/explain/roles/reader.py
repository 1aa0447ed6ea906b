"""The reader: a model's tokenizer, and its forward over a padded batch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Int
from torch import Tensor, nn

from clearhead.errors import InputError
from clearhead.explain.roles.corpus.rarity import WordCounts
from clearhead.explain.roles.corpus.sentence import Sentence
from clearhead.explain.roles.corpus.tokenised import TokenisedSentence, tokenised
from clearhead.models.decoder import Decoder
from clearhead.models.encoder import Encoder
from clearhead.models.encoder_decoder import EncoderDecoder
from clearhead.trace.passage import passage_of

Forward: TypeAlias = Callable[[Tensor, Tensor], object]  # (ids, real), both (batch, query)
LONGEST = 512  # tokens of a sentence
FEW = 64  # numbers of each tensor in the fingerprint
FEWEST = 64  # tokens of a forward: products of a few rows use another kernel and round differently


class Reader:
    """A model with its tokenizer; ``run`` computes its states, without logits where it can.

    ``model`` is what ``load`` returns, a model of ours, one of ``transformers``, or any torch
    model together with ``forward(ids, real)``. Of an encoder-decoder the encoder reads.
    """

    def __init__(
        self, model: Any, tokenizer: object = None, forward: Forward | None = None
    ) -> None:
        module = model if isinstance(model, nn.Module) else getattr(model, "model", None)
        if not isinstance(module, nn.Module):
            raise InputError(
                "roles wants what load returns, or a torch model with its tokenizer; got "
                f"{type(model).__name__}."
            )
        self.module: nn.Module = module
        self.tokenizer = tokenizer if tokenizer is not None else getattr(model, "tokenizer", None)
        if self.tokenizer is None:
            raise InputError(
                "roles reads texts and needs the model's tokenizer.",
                hint="put its tokenizer.json beside the weights, or in Python: "
                "roles(model, corpus, tokenizer=…), ours or a fast one of transformers.",
            )
        self.name = str(getattr(model, "name", type(self.module).__name__))
        self._forward = forward or _forward_of(self.module)
        config = getattr(self.module, "config", None)
        context = getattr(config, "context", None) or getattr(
            config, "max_position_embeddings", None
        )
        self.longest = min(LONGEST, context - 8) if isinstance(context, int) else LONGEST

    def read(self, sentence: Sentence, counts: WordCounts | None = None) -> TokenisedSentence:
        """Tokenise a sentence."""
        return tokenised(sentence, passage_of(self.tokenizer, sentence.text).tokens, counts)

    def run(self, ids: Int[Tensor, "batch query"], real: Bool[Tensor, "batch query"]) -> object:
        """Run one forward without gradients, on the model's own device.

        Rows of padding are added to a small batch, so that its numbers are, to the last bit, those
        of a large one.
        """
        device = next(self.module.parameters()).device
        rows = max(0, -(-(FEWEST - ids.numel()) // ids.shape[1]))
        ids, real = _with_rows(ids, rows), _with_rows(real, rows, value=True)
        with torch.no_grad():
            return self._forward(ids.to(device), real.to(device))

    @property
    def fingerprint(self) -> str:
        """A short hash of the model: of every bit of its parameters and buffers, as sums, and of
        some numbers of each."""
        digest = hashlib.blake2b(digest_size=8)
        held = [*self.module.named_parameters(), *self.module.named_buffers()]
        for name, tensor in held:
            digest.update(f"{name} {tuple(tensor.shape)} {_content(tensor)}".encode())
        return digest.hexdigest()


def _content(tensor: Tensor) -> tuple[int, list[float]]:
    """The sum of all bits as whole numbers, which does not depend on an order; evenly spaced
    numbers tell tensors apart that hold the same ones in another order."""
    flat = tensor.detach().flatten()
    if not flat.numel():
        return 0, []
    few = flat[:: max(1, flat.numel() // FEW)][:FEW].float().tolist()
    kinds = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    kind = kinds.get(flat.element_size())
    if kind is None or flat.dtype.is_complex:
        return 0, few
    return int(flat.contiguous().view(kind).sum(dtype=torch.int64)), few


def _forward_of(module: nn.Module) -> Forward:
    """The function that runs this model on rows that are padded at the end."""
    if isinstance(module, Decoder):  # causal: padding at the end is not attended to
        return lambda ids, _: module.stack(ids)
    if isinstance(module, Encoder | EncoderDecoder):
        stack = module.stack if isinstance(module, Encoder) else module.encoder
        return lambda ids, real: _encoded(stack, ids, _counts(real))
    config: Any = getattr(module, "config", None)
    if config is None or not hasattr(config, "model_type"):
        raise InputError(
            f"how to run {type(module).__name__} on token ids is not known.",
            hint="say it: roles(model, corpus, tokenizer=…, forward=lambda ids, real: …).",
        )
    called: Any = module
    if getattr(config, "is_encoder_decoder", False):
        called = called.get_encoder()
    return lambda ids, real: called(input_ids=ids, attention_mask=real.long())


def _with_rows(rows: Tensor, more: int, value: bool = False) -> Tensor:
    return torch.nn.functional.pad(rows, (0, 0, 0, more), value=value) if more else rows


def _encoded(stack: nn.Module, ids: Tensor, counts: Tensor) -> object:
    return stack(_with_rows(ids, len(counts) - len(ids)), counts=counts)


def _counts(real: Tensor) -> Tensor:
    """The number of real tokens of each row, and of a few rows that are added.

    The first added row is full, so attention over padded rows always has the same length, and the
    last bit of a row's numbers does not depend on the other rows. The others make the number of
    all tokens a multiple of ``FEWEST``: oneDNN prepares, and keeps in memory, a product for each
    number of rows that it meets.
    """
    counts, width = real.sum(dim=1), real.shape[1]
    missing = -(int(counts.sum()) + width) % FEWEST
    more = [width, *([width] * (missing // width))]
    if missing % width:
        more.append(missing % width)
    return torch.cat([counts, counts.new_tensor(more)])

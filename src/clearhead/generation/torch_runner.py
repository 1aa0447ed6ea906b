"""The runner on PyTorch: any model, any device."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from clearhead.errors import InputError, NotFiniteError
from clearhead.generation.sound_logits import unsound
from clearhead.models.decoder import Decoder
from clearhead.models.encoder_decoder import EncoderDecoder


class TorchRunner:
    """:class:`clearhead.generation.runner.Runner` for our models, with a ``ModelCache``.

    An encoder-decoder model needs its ``sources``, one for each row. They are encoded once, in the
    constructor. Their keys and values are projected by the first ``extend``.
    """

    def __init__(
        self, model: Decoder | EncoderDecoder, sources: list[list[int]] | None = None
    ) -> None:
        self.model = model
        self.vocab = model.config.vocab
        self.context = model.config.longest_text
        self.cache = model.new_cache()
        self._device = next(model.parameters()).device
        self._sources = self._encoded(sources)

    @property
    def length(self) -> int:
        """The number of tokens in the longest row."""
        return self.cache.length

    @property
    def lengths(self) -> list[int]:
        """The number of tokens in each row."""
        return [int(length) for length in self.cache.lengths]

    def extend(self, rows: list[list[int]]) -> Float[Tensor, "batch vocab"]:
        """Add one or more tokens to each row; return the logits after each row's last token."""
        with self._inference():
            return self._logits(*self._padded(rows), last_only=True)[:, 0]

    def extend_all(self, ids: list[int]) -> Float[Tensor, "query vocab"]:
        """Add tokens to the only row; return the logits after each of them."""
        with self._inference():
            return self._logits(*self._padded([ids]), last_only=False)[0]

    def crop(self, length: int) -> None:
        """Drop all tokens from position ``length`` on, in all rows; the sources stay."""
        self.cache.crop(length)

    def reorder(self, rows: list[int]) -> None:
        """Replace row i by the old row ``rows[i]``; the number of rows may change."""
        self.cache.reorder(torch.tensor(rows, dtype=torch.int64))

    def _logits(
        self,
        ids: Int[Tensor, "batch query"],
        real: Bool[Tensor, "batch query"] | None,
        *,
        last_only: bool,
    ) -> Float[Tensor, "batch query_or_1 vocab"]:
        if isinstance(self.model, Decoder):
            logits = self.model(ids, real=real, cache=self.cache, last_only=last_only)
        else:
            states, counts = self._sources or (None, None)
            logits = self.model.decode(
                ids, states, counts, real=real, cache=self.cache, last_only=last_only
            )
            self._sources = None  # the cache has their keys and values now
        return logits.float().cpu()  # type: ignore[no-any-return]

    def _encoded(
        self, sources: list[list[int]] | None
    ) -> tuple[Float[Tensor, "batch key model"], Int[Tensor, " batch"] | None] | None:
        if isinstance(self.model, Decoder):
            if sources is not None:
                raise InputError("a decoder has no encoder to read a source; leave sources out.")
            return None
        if not sources:
            raise InputError("an encoder-decoder model needs a source for its encoder; got none.")
        with self._inference():
            ids, real = self._padded(sources)
            return self.model.encode(ids, real=real)

    def _padded(
        self, rows: list[list[int]]
    ) -> tuple[Int[Tensor, "batch query"], Bool[Tensor, "batch query"] | None]:
        """Pad rows to one tensor; the mask of real tokens is None if there is no padding."""
        longest = max(map(len, rows), default=0)
        if not longest or not all(rows):
            raise InputError("every row of a batch needs at least one token; got an empty one.")
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows], device=self._device)
        if all(len(row) == longest for row in rows):
            return ids, None
        counts = torch.tensor([[len(row)] for row in rows], device=self._device)
        return ids, torch.arange(longest, device=self._device) < counts

    @contextmanager
    def _inference(self) -> Iterator[None]:
        """Disable gradients and dropout; a model in training mode returns to it afterwards.

        A model that computes NaN gets the one error that generation has for it.
        """
        training = self.model.training
        if training:
            self.model.eval()
        try:
            with torch.no_grad():
                yield
        except NotFiniteError as error:  # attention refuses NaN before the logits show it
            raise unsound() from error
        finally:
            if training:
                self.model.train()

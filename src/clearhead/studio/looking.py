"""The look at a text of a live page: what is shown first is sent at once, the rest when asked."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from clearhead.checkpoints.load import Loaded
from clearhead.errors import InputError
from clearhead.explain.generated import GeneratedText
from clearhead.explain.look import Look
from clearhead.explain.make_look import make_look
from clearhead.explain.why.parts import Why
from clearhead.studio.mapping import LongText
from clearhead.studio.reading import Reader, whole_passage
from clearhead.studio.worker import Job
from clearhead.trace.passage import Passage
from clearhead.trace.seen import Seen
from clearhead.views.page.blocks import Blocks
from clearhead.views.page.data import page_of_look, proof_meta
from clearhead.views.page.predictions import (
    TEMPERATURES,
    KeptLogits,
    add_lens,
    add_predictions,
    logits_meta,
)
from clearhead.views.page.strongest import Strongest

MOST_TOKENS = 1024  # of a text whose heads are all shown; longer ones are for the map
PROOF, LENS = "proof", "lens"  # computed when a page asks


class LiveBlocks(Blocks):
    """Blocks as plain bytes; those of rows are made when somebody asks for them."""

    def __init__(self) -> None:
        super().__init__()
        self.made: dict[str, bytes] = {}
        self._makers: dict[str, Callable[[], bytes]] = {}

    def add(self, name: str, data: bytes, *, deflated: bool = True) -> str:  # noqa: ARG002
        """Keep a block; nothing is packed, as it does not go into a file."""
        self.made[name] = data
        return name

    def add_later(self, name: str, make: Callable[[], bytes]) -> str:
        """Keep how a block is made."""
        self._makers[name] = make
        return name

    def add_all(self, makers: Mapping[str, Callable[[], bytes]]) -> None:
        """Keep how blocks are made."""
        self._makers |= makers

    def bytes_of(self, name: str) -> bytes | None:
        """A block; None if there is no such. It is not kept: the page that asks keeps it."""
        maker = self._makers.get(name)
        return self.made.get(name) if maker is None else maker()

    def take(self, names: Iterable[str]) -> dict[str, bytes]:
        """Some blocks, which are let go: a page has them from then on."""
        found = {name: self.bytes_of(name) for name in names}
        for name in found:
            self.made.pop(name, None)
        return {name: block for name, block in found.items() if block is not None}

    @property
    def nbytes(self) -> int:
        """What is kept: blocks, and the rows of which others are made."""
        rows = [one for make in self._makers.values() for one in getattr(make, "args", ())]
        arrays = [part for one in rows if isinstance(one, Strongest) for part in vars(one).values()]
        kept: int = sum(part.nbytes for part in arrays if part is not None)
        return kept + sum(map(len, self.made.values()))


@dataclass
class Pane:
    """What one side of a page shows: the text of its model, its look, and what was sent."""

    model: str = ""
    reader: Reader | None = None
    look: Look | None = None
    number: int = -1  # of the request that the look answers
    logits: KeptLogits | None = None
    why: Why | None = None
    long: LongText | None = None
    blocks: LiveBlocks = field(default_factory=LiveBlocks)

    def forget(self) -> None:
        """Free the memory."""
        self.reader = self.look = self.logits = self.why = self.long = None
        self.number, self.blocks = -1, LiveBlocks()

    @property
    def nbytes(self) -> int:
        """What it holds: keys, values, queries, outputs, weights, the cache of the session."""
        parts = [self.long, self.reader, self.blocks]
        held = sum(part.nbytes for part in parts if part is not None)
        own = (
            self.look is not None and self.reader is None
        )  # otherwise the records are the reader's
        return held + (self.look.kept_bytes + self.look.seen.nbytes * own if self.look else 0)

    def rest(self) -> None:
        """Let go of what is only needed to read on quickly."""
        if self.reader is not None:
            self.reader.rest()


def show_look(
    pane: Pane, thing: Loaded | Seen, name: str, job: Job, *,
    text: str, ids: Sequence[int], head: str | None,
) -> None:  # fmt: skip
    """Look at a text and send what a page shows of it first."""
    began = time.perf_counter()
    try:
        look, logits = _looked(pane, thing, name, job, text, ids, head)
    except _Long as long:
        job.tell("long", tokens=long.args[0], most=MOST_TOKENS)
        return
    blocks = LiveBlocks()
    data = page_of_look(
        look, blocks=blocks, predictions=_predictions(logits), proved=False,
        progress=lambda done, all: job.progress(done, all, "drawing"),
    )  # fmt: skip
    data.meta["tokens"] = token_meta(look)
    first = [_first_block(data.meta), *("gallery", "predictions", "tokens")]
    parts = blocks.take(one for one in first if one is not None)
    pane.look, pane.logits, pane.blocks, pane.number = look, logits, blocks, job.number
    computed = pane.reader.computed if pane.reader is not None else None
    taken = {"seconds": round(time.perf_counter() - began, 4), "computed": computed}
    sizes = [[one, len(part)] for one, part in parts.items()]
    job.tell("look", b"".join(parts.values()), meta=data.meta, blocks=sizes, **taken)


def send_block(pane: Pane, job: Job, *, look: int, name: str) -> None:
    """Send one block of the look that a page shows."""
    if pane.look is None or pane.number != look:
        job.tell("gone")
        return
    if name == PROOF:
        job.tell("block", json.dumps(proof_meta(pane.look)).encode("ascii"), name=name)
        return
    if name == LENS and name not in pane.blocks.made:
        add_lens(pane.blocks, pane.look)
    found = pane.blocks.bytes_of(name)
    if found is None:
        raise InputError("there is no such block in this look.")
    job.tell("block", found, name=name)


def _looked(
    pane: Pane, thing: Loaded | Seen, name: str, job: Job, text: str, ids: Sequence[int],
    head: str | None,
) -> tuple[Look, KeptLogits | None]:  # fmt: skip
    if isinstance(thing, Seen) or thing.config.kind != "decoder":
        pane.reader = None  # of a model that was shown before
    if isinstance(thing, Seen):
        if thing.records and thing.records[0].keys > MOST_TOKENS:
            raise _Long(thing.records[0].keys)
        return make_look(thing, head=head), None
    if thing.config.kind != "decoder":
        return make_look(thing, text, head=head), None
    passage, written = whole_passage(thing, text, ids)
    read = _without_last(passage, written)
    if len(read) > MOST_TOKENS:
        raise _Long(len(read))
    if pane.reader is None or pane.reader.loaded is not thing or pane.model != name:
        pane.forget()
        pane.reader, pane.model = Reader(thing), name
    seen, logits = pane.reader.read(read, lambda done, all: job.progress(done, all, "reading"))
    if written is not None:
        written = replace(written, probabilities=_came(logits, written))
    return Look(seen, head=head, loaded=thing, written=written), logits


def _came(logits: KeptLogits, written: GeneratedText) -> tuple[float | None, ...]:
    """The model's own probability of each written token; the last one is not read: None."""
    largest = logits.logits[:, :1].double()
    kept = (logits.logits.double() - largest).exp().sum(1)
    total = kept + logits.rests[:, TEMPERATURES.index(1.0)].double()
    shares = ((logits.came.double() - largest[:, 0]).exp() / total).tolist()
    return (*shares[written.prompt - 1 : -1], None)


def _without_last(passage: Passage, written: GeneratedText | None) -> Passage:
    """What a model has read: the last token that it wrote is not among it."""
    return passage if written is None else Passage(passage.text, passage.tokens[:-1])


class _Long(Exception):  # noqa: N818 - nothing went wrong
    """A text of which not all heads are shown at once."""


def _predictions(logits: KeptLogits | None) -> Callable[[Blocks, Look], dict[str, Any] | None]:
    if logits is None:
        return add_predictions

    def add(blocks: Blocks, look: Look) -> dict[str, Any]:
        passage = look.passages[0]
        assert look.loaded is not None and passage is not None
        read = Passage(passage.text, passage.tokens[: len(logits.ids)])
        meta = logits_meta(blocks, look.loaded, read, logits, TEMPERATURES)
        kept = logits.ids.shape[1]
        note = f"The {kept} likeliest tokens of each position; all others are one bar."
        return meta | {"lens": {"block": LENS, "later": True}, "note": note}

    return add


def token_meta(look: Look) -> dict[str, Any]:
    """The ids of the text's tokens, and their words."""
    passage = look.passages[0]
    ids = [] if passage is None else [token.id for token in passage.tokens]
    return {"ids": ids}


def plain_head(head: str | None) -> str | None:
    """The name of a head or layer; pages write all0 for the first group of all heads."""
    return "all" if head is not None and head.startswith("all") else head


def _first_block(meta: dict[str, Any]) -> str | None:
    """The rows of the head that is shown first."""
    chosen = meta["chosen"]["head"]
    for layer in meta["layers"]:
        if chosen in layer["heads"]:
            return str(layer["block"])
        if chosen == layer["name"]:
            return str(layer["pools"]["max"])
    return None if not meta["groups"] else str(meta["groups"][0]["pools"]["max"])

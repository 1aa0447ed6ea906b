"""A trace that is dropped on a page: it comes in pieces, into a folder that goes with the page."""

from __future__ import annotations

import base64
import binascii
import shutil
import tempfile
from pathlib import Path

from clearhead.errors import InputError

LARGEST = 1_000_000_000  # bytes of a dropped trace
MOST_BYTES = 2_000_000_000  # of those of all pages
PIECE = 400_000  # bytes of a piece, as a page sends them
FILE = "dropped.trace"  # whatever its name was


class Dropped:
    """The file of one page: a new one takes the place of the last."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self.size = 0  # that was told when it began
        self.come = 0  # bytes that are there

    def begin(self, size: int, others: int) -> None:
        """Make room for a file; ``others`` are the bytes that all other pages have here.

        Raises:
            InputError: it is too large.
        """
        self.forget()
        if size == 0:
            raise InputError("this file is empty.", hint="seen.save writes traces.")
        if not 0 < size <= LARGEST:
            raise InputError(
                f"this file has {size / 1e6:,.0f} MB; a trace of up to {LARGEST / 1e6:,.0f} MB can "
                "be dropped here.",
                hint="clearhead studio run.trace opens one of any size.",
            )
        if size + others > MOST_BYTES:
            raise InputError("other pages have dropped so much that there is no room for it.")
        self._folder = Path(tempfile.mkdtemp(prefix="clearhead-dropped-"))
        self.size, self.come = size, 0

    def add(self, first: int, data: str) -> Path | None:
        """Add a piece, in base64; the path of the file once it is whole.

        Raises:
            InputError: the piece does not follow on the last one, or is none.
        """
        if self._folder is None or first != self.come:
            raise InputError("this piece of a file does not follow on the one before.")
        try:
            piece = base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            raise InputError("a piece of a file is base64; this is none.") from None
        if not piece or self.come + len(piece) > self.size:
            raise InputError("a file has the size that was told, in pieces that hold something.")
        path = self._folder / FILE
        with path.open("ab") as file:
            file.write(piece)
        self.come += len(piece)
        return path if self.come == self.size else None

    def forget(self) -> None:
        """Remove the file."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        self._folder, self.size, self.come = None, 0, 0

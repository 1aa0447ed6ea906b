"""run.json, the record of a run: its plan, its model, and the checksums of the files it refers to.

The record has a checksum, too. A file that was changed or damaged is refused, never half believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clearhead.errors import CheckpointError
from clearhead.files.json_file import read_json, write_json
from clearhead.training.plan import Plan
from clearhead.training.run_folder.checksum import DamagedError, checksum_of_json
from clearhead.training.run_folder.schema import from_json

FORMAT = 2
LARGEST = 64 * 2**20  # bytes; lists of very many texts
GONE = (
    "restore it from a copy; or begin a new run from the model in the folder: --from (start_from=)."
)


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """The content of run.json."""

    plan: Plan
    model: dict[str, Any]  # the config, as ModelConfig.to_json writes it
    files: dict[str, str]  # path inside training/ → SHA-256

    def write(self, path: Path) -> None:
        """Write the record, with its format and its checksum."""
        content = {
            "format": FORMAT, "plan": self.plan.to_fields(), "model": self.model,
            "files": self.files,
        }  # fmt: skip
        write_json(path, content | {"sha256": checksum_of_json(content)})

    @classmethod
    def read(cls, path: Path) -> RunRecord:
        """The record in a file.

        Raises:
            CheckpointError: it is damaged, of another version, or no record of a run.
        """
        content = read_json(path, wanted="run.json", largest=LARGEST)
        _check_format(path, content.pop("format", None))
        if content.pop("sha256", None) != checksum_of_json({"format": FORMAT} | content):
            raise DamagedError(
                f"{path} is damaged or was changed: its checksum is not that of its content.",
                hint=GONE,
            )
        return from_json(cls, content, str(path))


def _check_format(path: Path, found: object) -> None:
    if found == FORMAT and type(found) is int:
        return
    if type(found) is int and found > FORMAT:
        raise CheckpointError(
            f"{path} is of format {found}, and this version of clearhead knows {FORMAT}.",
            hint="resume the run with the version that began it.",
        )
    raise CheckpointError(
        f"{path} is of an earlier version of clearhead, or damaged.",
        hint="a run is resumed by the version that began it. The model in the folder can be used "
        "and trained further: --from (start_from=).",
    )

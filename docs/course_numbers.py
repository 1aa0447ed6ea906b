"""Write the numbers of SmolLM2 that the course shows: ``python docs/course_numbers.py``.

They go to ``src/clearhead/views/course/data/smollm2.json``, so that ``clearhead learn`` needs no
model. It takes about three minutes, most of them for the roles of all heads.
"""

from __future__ import annotations

import json
from pathlib import Path

import clearhead as ch
from clearhead.checkpoints.store.cache_folder import cache_folder
from clearhead.explain.course.numbers import course_numbers
from clearhead.files.atomic_write import atomic_write

FILE = Path(__file__).parents[1] / "src/clearhead/views/course/data/smollm2.json"


def main() -> None:
    """Run the model, and write the file."""
    loaded = ch.load("smollm2")
    (cache_folder() / "roles").mkdir(parents=True, exist_ok=True)
    roles = ch.roles(loaded, keep=cache_folder() / "roles" / "course.counts")
    numbers = course_numbers(loaded, roles.insight)
    FILE.parent.mkdir(exist_ok=True)
    with atomic_write(FILE) as temporary:
        temporary.write_text(json.dumps(numbers, ensure_ascii=True, separators=(",", ":")) + "\n")
    print(f"{FILE} is written ({FILE.stat().st_size:,} bytes).")


if __name__ == "__main__":
    main()

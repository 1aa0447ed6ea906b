from __future__ import annotations

from pathlib import Path

import pytest

from tests.hostile.formats import FORMATS
from tests.hostile.kinds import BY_ENDING, kind_of
from tests.hostile.kinds.special import SPECIAL
from tests.hostile.mutant import Format, clear, mutant, write

SPECIMENS = {
    ".json": b'{"a": [1, {"b": "x"}], "c": null}',
    ".jsonl": b'{"a": 1}\n{"a": 2}\n',
    ".conllu": b"1\tThey\n\n2\tx",
    ".tsv": b"a\t1:2",
    ".txt": b"One. Two.",
    ".jinja": b"{% if x %}y{% endif %}",
}


@pytest.mark.parametrize("ending", SPECIMENS)
def test_every_step_is_another_content(ending: str) -> None:
    kind, data = BY_ENDING[ending], SPECIMENS[ending]
    made = [kind.step(data, number) for number in range(kind.steps(data))]
    assert sum(one != data for one in made) > 0.9 * len(made) > 20
    with pytest.raises(IndexError):
        kind.step(data, kind.steps(data))


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda format: format.name)
def test_mutants_are_the_same_whenever_they_are_made(format: Format) -> None:
    for number in (0, 1, 2 * len(SPECIAL), 37, 2 * format.steps - 2, 2 * format.steps + 37):
        first, again = (mutant(format, 3, number).made() for _ in range(2))
        assert first == again
    other = [mutant(format, 4, n).made() for n in range(1, 19, 2)]
    assert other != [mutant(format, 3, n).made() for n in range(1, 19, 2)]


@pytest.mark.parametrize("format", FORMATS.values(), ids=lambda format: format.name)
def test_the_walk_changes_every_file_of_every_specimen(format: Format) -> None:
    walked = {(specimen, path) for specimen, path, _ in format.walk}
    wanted = {(n, path) for n, files in enumerate(format.specimens) for path in files}
    assert walked == {(n, path) for n, path in wanted if path not in format.kept}
    assert {format.step_of(2 * n) for n in range(format.steps)} == set(range(format.steps))
    assert format.step_of(1) is None and format.step_of(2 * format.steps) is None
    for specimen, path, steps in format.walk:
        assert steps > len(SPECIAL) + kind_of(path).steps(format.specimens[specimen][path])


def test_whatever_lies_at_a_path_can_be_cleared_away(tmp_path: Path) -> None:
    for name in SPECIAL:
        write({"deep/er/a": name, "b": b"x"}, tmp_path)
        clear(tmp_path)
        assert list(tmp_path.iterdir()) == []

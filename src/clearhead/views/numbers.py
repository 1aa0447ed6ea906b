"""Numbers and vectors as text, the same in every renderer."""

from __future__ import annotations

from clearhead.explain.pictures import Measure, two_decimals
from clearhead.explain.step_table import StepTable, Vector

QUERY_SHOWN = 4  # entries of q above a step table


def number_text(number: float) -> str:
    """Two decimals; whole numbers without."""
    return _decimals(number, 0 if number == round(number) else 2)


def weight_text(number: float) -> str:
    """A number of a picture with two decimals, however small."""
    return two_decimals(number)


def measure_text(measure: Measure) -> str:
    """The name of the numbers in a picture, for headings and scales."""
    return "weight" if measure == "weight" else "·‖v‖"


def share_text(share: float) -> str:
    """A probability with four decimals; a tiny one with its power of ten."""
    return f"{share:.4f}" if share >= 0.0001 or share == 0 else f"{share:.0e}"


def vector_text(numbers: Vector, shown: int) -> str:
    """A vector in brackets; of a long one the first entries."""
    whole = all(number == round(number) for number in numbers)
    parts = [_decimals(number, 0 if whole else 2) for number in numbers[:shown]]
    return f"[{' '.join(parts)}{'…' if len(numbers) > shown else ''}]"


def query_text(table: StepTable, word: str) -> str:
    """The line above a step table: the query vector of the word."""
    return f"q of “{word}” = {vector_text(table.query, QUERY_SHOWN)}"


def _decimals(number: float, decimals: int) -> str:
    text = f"{number:.{decimals}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")

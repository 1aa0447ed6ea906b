"""The effect cache: effects of ablations in a file beside the counts, so that none is measured
twice.

It is written after every head. Like the counts it may come back damaged, or from somebody else:
what is not exactly what was written for this run is measured again.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias, get_args

from clearhead.errors import CheckpointError
from clearhead.explain.roles.counts.tally import Tally
from clearhead.explain.roles.effect import Change, Effect, Measure, Way
from clearhead.files.atomic_write import atomic_write
from clearhead.files.json_file import parse_json
from clearhead.files.regular_file import read_regular_file

VERSION = 1  # of the file, and of how effects are measured
LARGEST = 2**24  # bytes
MOST = 2**53  # positions
Known: TypeAlias = dict[tuple[str, str], tuple[Effect, ...]]  # by head and property


class EffectCache:
    """The effects that are known so far, for one model, corpus and set of properties."""

    def __init__(self, counts: Path, run_key: str, tally: Tally) -> None:
        self.path = effects_path(counts)
        self._key = _key(run_key, tally)
        self.known = self._load()

    def keep(self, effects: Sequence[Effect]) -> None:
        """Add the effects of one head on one property, and write all of them."""
        self.known[effects[0].head, effects[0].property] = tuple(effects)
        listed = [_to_plain(one) for known in self.known.values() for one in known]
        content: dict[str, Any] = {"version": VERSION, "key": self._key, "effects": listed}
        content["checksum"] = _checksum(content)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(self.path) as temporary:
                temporary.write_text(json.dumps(content, indent=1), encoding="utf-8")
        except OSError as error:
            raise CheckpointError(
                f"effects cannot be kept in {self.path}: {error.strerror}."
            ) from None

    def _load(self) -> Known:
        try:
            data = read_regular_file(self.path, "effects", largest=LARGEST)
            content = parse_json(data)
            checksum = content.pop("checksum")
            if checksum != _checksum(content) or content["version"] != VERSION:
                return {}
            if content["key"] != self._key:
                return {}
            return _grouped([_from_plain(one) for one in content["effects"]])
        except (CheckpointError, ValueError, TypeError, LookupError, AttributeError):
            return {}  # none, another file, or a damaged one: it is written again


def effects_path(counts: Path) -> Path:
    """The file of effects beside a file of counts."""
    return counts.with_name(f"{counts.name}.effects")


def _key(run_key: str, tally: Tally) -> str:
    """A hash of the run, and of the sentences on which effects are measured."""
    digest = hashlib.blake2b(run_key.encode(), digest_size=12)
    for name in sorted(tally.samples):
        texts = sorted(text for _, text, _ in tally.samples[name])
        digest.update(json.dumps([name, texts]).encode())
    return digest.hexdigest()


def _checksum(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _to_plain(effect: Effect) -> dict[str, Any]:
    plain = asdict(effect)
    for name in ("at_cases", "elsewhere"):
        if not math.isfinite(plain[name]["error"]):
            plain[name]["error"] = None  # of fewer than two positions
    return plain


def _from_plain(plain: dict[str, Any]) -> Effect:
    at_cases, elsewhere = (_change(plain.pop(name)) for name in ("at_cases", "elsewhere"))
    effect = Effect(**plain, at_cases=at_cases, elsewhere=elsewhere)
    sound = (
        isinstance(effect.head, str)
        and isinstance(effect.property, str)
        and effect.way in get_args(Way)
        and effect.measure in get_args(Measure)
    )
    if not sound:
        raise ValueError("this is no effect")
    return effect


def _change(plain: dict[str, Any]) -> Change:
    if plain["error"] is None:
        plain["error"] = math.inf
    mean, error, positions = plain["mean"], plain["error"], plain["positions"]
    if any(type(number) is not float or math.isnan(number) for number in (mean, error)):
        raise ValueError("a number is missing")
    if type(positions) is not int or not 0 <= positions < MOST:
        raise ValueError("positions are counted")
    return Change(**plain)


def _grouped(effects: Sequence[Effect]) -> Known:
    known: Known = {}
    for one in effects:
        known[one.head, one.property] = (*known.get((one.head, one.property), ()), one)
    if any([one.way for one in found] != list(get_args(Way)) for found in known.values()):
        raise ValueError("a head is ablated in each way once")
    return known

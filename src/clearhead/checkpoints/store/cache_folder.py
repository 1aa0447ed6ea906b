"""The cache folder for fetched models on this machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HOME_VARIABLE = "CLEARHEAD_HOME"


def cache_folder() -> Path:
    """Return ``$CLEARHEAD_HOME``, or clearhead's folder in the platform's cache folder."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen).expanduser().absolute()
    return _platform_cache() / "clearhead"


def _platform_cache() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    # The XDG specification says that a relative path is to be ignored.
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return chosen if chosen.is_absolute() else Path.home() / ".cache"

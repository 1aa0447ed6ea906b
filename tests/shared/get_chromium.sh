#!/usr/bin/env bash
# Gets a Chromium for the tests in tests/views, where one can be had, and says so in one line.
# Debian's package where it may be installed, otherwise the one that playwright brings.
# usage: tests/shared/get_chromium.sh PYTHON
set -u
python=${1:-python3}
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  if command -v "$name" >/dev/null; then echo "browser tests use $(command -v "$name")"; exit 0; fi
done
if "$python" -c 'import os, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as p: sys.exit(not os.path.exists(p.chromium.executable_path))' 2>/dev/null; then
  echo "browser tests use playwright's Chromium"; exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  echo "browser tests: installing Debian's chromium (once)"
  if { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium; } >/dev/null 2>&1; then
    echo "browser tests use $(command -v chromium)"; exit 0
  fi
fi
echo "browser tests: installing playwright's Chromium (once)"
if "$python" -m playwright install chromium >/dev/null 2>&1; then
  echo "browser tests use playwright's Chromium"; exit 0
fi
echo "no Chromium could be had: browser tests are skipped"

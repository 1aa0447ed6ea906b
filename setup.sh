# Sourced by ./run and ./test: makes sure that .venv holds what they need, and says what it does.
# usage: . ./setup.sh NAME EXTRAS   (NAME of the set-up stamp, EXTRAS of pyproject.toml, may be empty)

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

find_python() {  # the one that the variable PYTHON names, or the first that will do
  for candidate in ${PYTHON:-python3.11 python3.12 python3.13 python3.14 python3 python}; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      echo "$candidate"; return
    fi
  done
  echo "clearhead needs Python 3.11 or newer with venv and pip (on Debian: apt install python3-venv)." >&2
  [ -z "${PYTHON:-}" ] || echo "The variable PYTHON names $PYTHON, which will not do." >&2
  return 1
}

set_up() {
  local name=$1 extras=$2 stamp=.venv/clearhead-$1.stamp wanted
  wanted=$({ cat pyproject.toml constraints.txt setup.sh
             grep '^__version__' src/clearhead/__init__.py; } | cksum)
  if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  if ! [ -x .venv/bin/python ]; then
    local python; python=$(find_python)
    echo "set-up 1/2: creating .venv with $("$python" --version)" >&2
    "$python" -m venv .venv
  else
    echo "set-up 1/2: .venv is there" >&2
  fi
  echo "set-up 2/2: installing clearhead${extras:+[$extras]} and what it needs (once; torch is the large one)" >&2
  local progress=off; [ -t 2 ] && progress=on
  # torch first and exactly pinned: an open range would take gigabytes of CUDA packages.
  .venv/bin/python -m pip install --progress-bar "$progress" --no-warn-script-location \
    -c constraints.txt torch -e ".${extras:+[$extras]}" 2>&1 | tee .venv/setup.log \
    | sed -u -n -E -e 's/^Collecting ([^ ]+).*/  \1/p' -e '/^ERROR|^error/p' -e '/[0-9] [MG]B/p' >&2 \
    || { tail -n 20 .venv/setup.log >&2
         echo "set-up failed (all of it: .venv/setup.log). Are the package registries reachable?" >&2; return 1; }
  echo "$wanted" > "$stamp.part"; mv "$stamp.part" "$stamp"
  echo "set-up done" >&2
}

#!/usr/bin/env bash
# Installs what the tests need, checks the style of the sources, and runs all tests.
#
#   scripts/test.sh [PYTEST ARGUMENTS]
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install.sh plots test lint
PATH=$PWD/.venv/bin:$PATH
ruff check .
ruff format --check .
mypy
find caffe sz -name '*.[ch]pp' -o -name '*.inl' -o -name '*.h' | sort | xargs clang-format --dry-run -Werror
python -m pytest "$@"

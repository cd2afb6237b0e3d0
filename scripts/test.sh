#!/usr/bin/env bash
# Installs what the tests need, checks the style of the sources, and runs all tests.
#
#   scripts/test.sh [PYTEST ARGUMENTS]
#
# COMET_FUZZ_SECONDS is how long each of libFuzzer's harnesses runs, where clang has it (else pytest
# says so and g++'s harness runs alone).
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/install.sh plots test lint
PATH=$PWD/.venv/bin:$PATH
ruff check .
ruff format --check .
mypy
find docker -name Dockerfile -print0 | xargs -0 hadolint
find caffe sz tests -name '*.[ch]pp' -o -name '*.inl' -o -name '*.[ch]' | sort | xargs clang-format --dry-run -Werror
export COMET_FUZZ_SECONDS=${COMET_FUZZ_SECONDS:-60}
python -m pytest "$@"

#!/usr/bin/env bash
# Installs what COMET needs, and COMET itself into .venv. What is there and up to date stays as it is.
#
#   scripts/install.sh [EXTRA ...]     extras of pyproject.toml: plots, hdf5, test, lint
#
# PYTHON names the interpreter to use, python3 by default. Root is needed only where a system package
# is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
venv=.venv

fail() {
  echo "install.sh: $*" >&2
  exit 1
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "root is needed once, and there is no sudo; as root, run: apt-get install ${missing[*]}"
  fi
}

has_header() {
  echo "#include <$1>" | g++ -E -x c++ - >/dev/null 2>&1
}

# -- system packages
missing=()
command -v g++ >/dev/null || missing+=(g++)
has_header oneapi/dnnl/dnnl.hpp || missing+=(libdnnl-dev)
command -v "$python" >/dev/null || missing+=(python3)
"$python" -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
"$python" -c 'import pathlib, sysconfig as s; pathlib.Path(s.get_path("include"), "Python.h").stat()' \
  2>/dev/null || missing+=(python3-dev)
if [ ${#missing[@]} -gt 0 ]; then
  command -v apt-get >/dev/null ||
    fail "missing, by their Debian names: ${missing[*]}; install them with your system's tools"
  echo "install.sh: installing ${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    "${missing[@]}"
fi

# -- the package, built anew when a source or the interpreter has changed
[ -x $venv/bin/pip ] || "$python" -m venv $venv
sources() {
  find CMakeLists.txt MANIFEST.in pyproject.toml setup.py cmake caffe sz python -type f \
    ! -name '*.pyc' ! -name '*.so' ! -path '*.egg-info/*' -print0 | sort -z | xargs -0 sha256sum
}
stamp=$({ sources && $venv/bin/python -VV; } | sha256sum)
if [ "$(cat $venv/comet.stamp 2>/dev/null)" != "$stamp" ]; then
  echo "install.sh: building COMET; the first time takes some minutes"
  # Not in pip's isolated environment: its path changes each time, and ccache would find nothing.
  $venv/bin/python - >$venv/build-requires.txt <<'END'
try:
    import tomllib
except ImportError:  # before Python 3.11
    from pip._vendor import tomli as tomllib
with open("pyproject.toml", "rb") as file:
    print(*tomllib.load(file)["build-system"]["requires"], sep="\n")
END
  $venv/bin/pip install -q -r $venv/build-requires.txt
  command -v ccache >/dev/null && export CMAKE_CXX_COMPILER_LAUNCHER=ccache
  rm -rf build/lib.* # setuptools would pack modules that are gone from the sources
  $venv/bin/pip install -q --no-build-isolation .
  echo "$stamp" >$venv/comet.stamp
fi

# -- extras: pip finds the package installed and adds what they name
extras=$(IFS=, && echo "$*")
[ -z "$extras" ] || $venv/bin/pip install -q "comet-caffe[$extras]"

#!/usr/bin/env bash
# Installs COMET on another release of Debian, from nothing, and tries it there: the quickstart, and the
# tests that depend on oneDNN's and Python's versions. What is committed is what is tried.
#
#   scripts/check_debian.sh [RELEASE [PYTEST ARGUMENTS]]     trixie by default; as root
#
# Takes a quarter of an hour on an idle machine with two cores, and 3 GB below TMPDIR (/tmp by default),
# which go at the end. See containers.sh for mirrors and proxies.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/containers.sh
release=${1:-trixie}
shift $(($# > 0))
tests=("$@")
[ ${#tests[@]} -gt 0 ] || tests=(tests/layers tests/solver tests/cli)

containers_begin
debian_image "$release" debian-base
container=$(builder from --pull-never localhost/debian-base)
mkdir "$work/sources"
git archive HEAD | tar -x -C "$work/sources"
builder copy --quiet "$container" "$work/sources" /opt/comet >/dev/null

inside() {
  builder run --isolation chroot --workingdir /opt/comet "${pip_volumes[@]}" "$container" -- "$@"
}
inside sh -c 'apt-get update -q && scripts/install.sh plots test'
inside sh -c '. /etc/os-release; echo "== $PRETTY_NAME"; .venv/bin/python -VV; dpkg -l | grep -o "libdnnl-dev.*"'
inside scripts/quickstart.sh
inside .venv/bin/python -m pytest -q "${tests[@]}"

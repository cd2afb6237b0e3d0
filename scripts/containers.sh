# Containers of plain Debian without a container engine: buildah runs them in a chroot. Sourced by
# check_debian.sh and check_docker.sh; needs root, which debootstrap and the chroot do.
#
# Everything lies in $work, which goes at exit. Proxies come from the environment (http_proxy and its
# kin), Debian's mirror from DEBIAN_MIRROR (debootstrap's default otherwise), pip's settings from the
# host's, so that containers reach what the host reaches.

fail() {
  echo "${0##*/}: $*" >&2
  exit 1
}

# Installs what is missing, and makes $work.
containers_begin() {
  [ "$(id -u)" -eq 0 ] || fail "must run as root: debootstrap makes device files, buildah changes the root"
  local missing=() program
  for program in buildah debootstrap; do
    command -v $program >/dev/null || missing+=("$program")
  done
  if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || fail "missing: ${missing[*]}; install them with your system's tools"
    apt-get update -q
    DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
  fi
  work=$(mktemp -d -p "${TMPDIR:-/tmp}" comet-containers.XXXXXX)
  trap containers_end EXIT
  pip_settings
}

containers_end() {
  local mounted status=$?
  # Containers that a failed step left mounted, innermost first.
  for mounted in $(awk -v work="$work/" 'index($2, work) == 1 { print $2 }' /proc/self/mounts | sort -r); do
    umount "$mounted" || true
  done
  if grep -q " $work/" /proc/self/mounts; then
    fail "cannot unmount what is in $work; remove it by hand"
  fi
  rm -rf "$work"
}

# buildah, with its images and containers in $work.
builder() {
  buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs "$@"
}

# Volumes for pip inside a container: the host's index, proxy and certificate.
pip_settings() {
  mkdir "$work/pip"
  local certificate
  python3 -m pip config list 2>/dev/null | awk -F= '
    BEGIN { print "[global]" }
    { name = $1; sub(/.*\./, "", name); value = substr($0, length($1) + 2); gsub(/\047/, "", value) }
    name ~ /^(cert|index-url|trusted-host|proxy)$/ && !seen[name]++ { print name " = " value }
  ' >"$work/pip/pip.conf"
  certificate=$(sed -n 's/^cert = //p' "$work/pip/pip.conf")
  pip_volumes=(--volume "$work/pip/pip.conf:/etc/pip.conf:ro")
  if [ -n "$certificate" ]; then
    cp "$certificate" "$work/pip/ca.crt"
    sed -i 's|^cert = .*|cert = /etc/pip-ca.crt|' "$work/pip/pip.conf"
    pip_volumes+=(--volume "$work/pip/ca.crt:/etc/pip-ca.crt:ro")
  fi
}

# Makes the image localhost/NAME, the smallest root file system of a release of Debian.
debian_image() { # RELEASE NAME
  local container root
  echo "== Debian $1 as the image localhost/$2"
  container=$(builder from scratch)
  root=$(builder mount "$container")
  debootstrap --variant=minbase "$1" "$root" ${DEBIAN_MIRROR:+"$DEBIAN_MIRROR"} >"$work/debootstrap.log" 2>&1 ||
    { tail -n 5 "$work/debootstrap.log" >&2; fail "debootstrap $1 failed; its last lines are above"; }
  rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
  builder umount "$container" >/dev/null
  builder commit --quiet --rm "$container" "localhost/$2" >/dev/null
}

#!/usr/bin/env bash
# Builds docker/cpu/Dockerfile without a container engine, and runs what docker/help.txt and the COMET
# authors' readme name in it: as the image's user, without a network.
#
#   scripts/check_docker.sh [RELEASE [BUILD ARGUMENTS]]     bookworm by default; as root
#   scripts/check_docker.sh trixie --build-arg ONEDNN=libdnnl3.6
#
# Takes some ten minutes on an idle machine with two cores, and 3 GB below TMPDIR (/tmp by default), which
# go at the end. See containers.sh for mirrors and proxies.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/containers.sh
release=${1:-bookworm}
shift $(($# > 0))

containers_begin
debian_image "$release" debian-base
builder build --quiet --isolation chroot --pull-never "${pip_volumes[@]}" --build-arg BASE=localhost/debian-base "$@" \
  --file docker/cpu/Dockerfile --tag localhost/comet . >"$work/build.log" 2>&1 ||
  { tail -n 20 "$work/build.log" >&2; fail "the build failed; its last lines are above"; }
builder rmi localhost/debian-base >/dev/null
container=$(builder from --pull-never localhost/comet)
entry=$(builder inspect --type image --format '{{index .OCIv1.Config.Entrypoint 0}}' localhost/comet)
mkdir -m 777 "$work/data"

# docker run IMAGE "$@", in a network namespace of its own, in which nothing is up.
run() {
  unshare --net buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs \
    run --isolation chroot --volume "$work/data:/data" "$container" -- "$entry" "$@"
}
# Runs a command and shows its last lines; its whole output must have what the pattern says.
expect() { # PATTERN COMMAND ...
  local pattern=$1
  shift
  echo "== $*" | head -n 1
  run "$@" >"$work/out" 2>&1 || { tail -n 20 "$work/out" >&2; fail "failed: $*"; }
  tail -n 4 "$work/out"
  grep -qE -- "$pattern" "$work/out" || fail "its output has no '$pattern': $*"
}

expect 'Give a command behind'
expect '^1000$' id -u
expect '^ *lo:' sh -c 'test "$(tail -n +3 /proc/net/dev | wc -l)" = 1 && cat /proc/net/dev'
expect 'train a net' caffe help

# Training with compression, as typed, of a net whose solver is shorter.
run sed -i 's/^max_iter:.*/max_iter: 60/; s/^test_iter:.*/test_iter: 5/' models/fashion_cnn/solver.prototxt
expect 'Optimization Done' caffe train -solver models/fashion_cnn/solver.prototxt -compression_log /data/log.json
expect 'bounded' sh -c 'tail -n 1 /data/log.json | cut -c 1-200 && grep -o bounded /data/log.json | head -n 1'
expect 'accuracy = ' ./build/tools/caffe test -model models/fashion_cnn/train_val.prototxt \
  -weights models/fashion_cnn/fashion_cnn_iter_60.caffemodel -iterations 5

# Images of the user's, through the tools that the COMET authors name.
expect '12 images' python3 -c "
import numpy, PIL.Image
random = numpy.random.default_rng(0)
with open('/data/list.txt', 'w') as names:
    for number in range(12):
        pixels = random.integers(0, 256, (300, 260, 3), dtype=numpy.uint8)
        PIL.Image.fromarray(pixels).save(f'/data/{number}.jpg')
        print(f'{number}.jpg {number % 2}', file=names)
print('12 images')"
for part in train val; do
  expect '12' ./build/tools/convert_imageset --shuffle --resize_height=256 --resize_width=256 \
    /data/ /data/list.txt examples/imagenet/ilsvrc12_${part}_lmdb
done
expect '' ./build/tools/compute_image_mean examples/imagenet/ilsvrc12_train_lmdb /data/mean.binaryproto
run sed -i 's/batch_size:.*/batch_size: 4/' models/bvlc_reference_caffenet/train_val.prototxt
run sed -i 's/^max_iter:.*/max_iter: 2/; s/^test_iter:.*/test_iter: 1/; s/^display:.*/display: 1/' \
  models/bvlc_reference_caffenet/solver.prototxt
expect 'Optimization Done' ./build/tools/caffe train -solver ./models/bvlc_reference_caffenet/solver.prototxt
expect 'class' python3 examples/classify_image.py -model models/bvlc_reference_caffenet/deploy.prototxt \
  -weights models/bvlc_reference_caffenet/caffenet_train_iter_2.caffemodel -raw_scale 255 /data/0.jpg

# Links that lead nowhere, and programs that do not start.
for program in $(run sh -c 'ls build/tools/* python/*.py tools/extra/*.py'); do
  expect 'usage' "$program" -help
done
builder images

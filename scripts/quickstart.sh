#!/usr/bin/env bash
# From a bare Debian 12 or 13 to a trained network with compressed activations: installs COMET, takes
# Fashion-MNIST from Debian's packages, trains models/fashion_cnn plainly and with adaptive
# compression, and compares accuracy, memory and time. Running it again installs nothing anew.
#
#   scripts/quickstart.sh [EPOCHS]     1 by default; the model's readme uses 5
set -euo pipefail
cd "$(dirname "$0")/.."
epochs=${1:-1}

scripts/install.sh plots
PATH=$PWD/.venv/bin:$PATH
caffe prepare fashion-mnist -out data/fashion_mnist
python -m caffe.report.compare \
  --solver models/fashion_cnn/solver.prototxt --iterations $((938 * epochs)) \
  --out out/quickstart --least-accuracy 0.87 --most-lost 0.5

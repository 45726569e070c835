#!/bin/sh
# A real model of 2.5 GB, as an exporter writes it: vit_h_14.sh BUILD_DIR [MODEL_DIR]
#
# torchvision's vit_h_14 (632 million parameters, 199 data files) is exported to MODEL_DIR/vit_h_14 with
# Debian's torch unless it is there: about 4 minutes and 6.5 GB of memory. It is split in 2 and 4 with
# --verify, with both kinds of boundary, beside cp of the same bytes; then model and stages run in ONNX
# Runtime and every output must have the same bits: a minute each. MODEL_DIR is a directory that is
# removed at the end unless it is given; 8 GB of disk are needed.
#
# PSPLIT_ONNXRUNTIME names libonnxruntime.so; by default that of tests/e2e/node_modules.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/psplit-vit-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
models=${2:-$work}
PSPLIT_ONNXRUNTIME=${PSPLIT_ONNXRUNTIME:-$(find "$here/../e2e/node_modules/onnxruntime-node/bin" \
  -path "*linux/$(uname -m | sed 's/x86_64/x64/; s/aarch64/arm64/')/libonnxruntime.so.1")}
export PSPLIT_ONNXRUNTIME

timed() {
  title=$1
  shift
  /usr/bin/time -f "%e %M" -o "$work/time" "$@"
  awk -v title="$title" '{ printf "%-36s %7.2f s %6.0f MB\n", title, $1, $2 / 1000 }' "$work/time"
}

[ -d "$models/vit_h_14" ] ||
  timed export /usr/bin/python3 -W ignore "$here/../models/export.py" "$models" vit_h_14
model=$models/vit_h_14/vit_h_14.onnx
cat "$models"/vit_h_14/* >/dev/null
timed cp cp -r "$models/vit_h_14" "$work/copy"
rm -rf "$work/copy"
for k in 2 4; do
  for boundary in sendrecv io; do
    timed "$k stages, $boundary: split --verify" "$build/tools/onnx-pipeline-split" "$model" -k $k \
      -o "$work/out" --dim batch=1 --boundary $boundary --verify --quiet
    timed "$k stages, $boundary: run and compare" "$build/tools/onnx-pipeline-verify" "$work/out" \
      --model "$model" --run --dim batch=1 --micro-batches 1
    rm -rf "$work/out"
  done
done

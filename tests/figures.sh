#!/bin/sh
# The figures of a release: sh tests/figures.sh [TOOL]
#
# Time and peak memory to split large models, beside `cp` of the same file and beside loading and
# saving it with python3-onnx, all in one run and with the file warm; then how far each plan for
# four stages is from its lower bound. TOOL is build/tools/onnx-pipeline-split by default: a release
# build, as samples/quickstart.sh makes it.
set -eu
cd "$(dirname "$0")/.."
tool=$(realpath "${1:-build/tools/onnx-pipeline-split}")
cache=${PSPLIT_MODEL_CACHE:-.cache/models}
sh samples/install.sh time python3-onnx
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Best of three by time: "seconds peak-MB".
measure() {
  for _ in 1 2 3; do
    rm -rf "$tmp/out"
    /usr/bin/time -f '%e %M' -o "$tmp/time" "$@" >/dev/null
    cat "$tmp/time"
  done | sort -n | awk 'NR == 1 { printf "%.2f s %5.0f MB", $1, $2 / 1024 }'
}

for name in resnet50 vit_b_16; do
  model=$cache/$name.onnx
  cat "$model" >/dev/null
  echo "$name  cp      $(measure cp "$model" "$tmp/out")"
  echo "$name  split   $(measure "$tool" "$model" -k 4 -o "$tmp/out" --dim batch=1 --quiet)"
  echo "$name  python  $(measure /usr/bin/python3 -c \
    'import onnx, sys; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])' "$model" "$tmp/out")"
done

echo
node tests/e2e/plans.mjs "$tool"

#!/bin/sh
# Why: what splitters lose, kept: each fixture cut in 2 and 3 slices, in both boundary modes, is the
# model bit for bit.  semantics.sh SLICE_EMIT MAKE_MODEL; results as TAP.
set -eu
tool=$1 make_model=$2
here=$(cd "$(dirname "$0")" && pwd)
e2e=$here/../e2e
skip() {
  echo "1..0 # SKIP $1"
  exit 0
}
command -v node >/dev/null || skip "there is no node"
[ -d "$e2e/node_modules/onnxruntime-node" ] ||
  skip "there is no onnxruntime-node; npm ci in tests/e2e brings it"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for text in "$here"/models/*.onnxtxt; do
  "$make_model" "$work/$(basename "$text" .onnxtxt).onnx" "$text"
done
# 4,808 floats of about 0.01, of one byte each four times.
head -c 19232 /dev/zero | tr '\0' '<' >"$work/external.bin"
n=0
for model in "$work"/*.onnx; do
  for how in '2 sendrecv' '2 io' '3 sendrecv' '3 io'; do
    set -- $how
    n=$((n + 1))
    title="$(basename "$model" .onnx), $1 slices, $2"
    if "$tool" "$model" "$1" "$work/out" "$2" >"$work/log" 2>&1 &&
       node "$e2e/chain.mjs" "$work/out" --model "$model" >"$work/log" 2>&1; then
      echo "ok $n - $title"
    else
      echo "not ok $n - $title"
      grep -v '^ok' "$work/log" | sed 's/^/# /' | head -20
    fi
    rm -rf "$work/out"
  done
done
echo "1..$n"

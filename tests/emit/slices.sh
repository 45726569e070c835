#!/bin/sh
# Why: whatever the planner says, slices of a real model run one after the other are the model, bit
# for bit.  slices.sh SLICE_EMIT MODEL    (a name in the model cache); results as TAP.
set -eu
tool=$1 name=$2
here=$(cd "$(dirname "$0")" && pwd)
e2e=$here/../e2e
model=${PSPLIT_MODEL_CACHE:-$here/../../.cache/models}/$name.onnx
skip() {
  echo "1..0 # SKIP $1"
  exit 0
}
[ -f "$model" ] || skip "the model cache has no $name.onnx; tests/models/fetch.sh fills it"
command -v node >/dev/null || skip "there is no node"
[ -d "$e2e/node_modules/onnxruntime-node" ] ||
  skip "there is no onnxruntime-node; npm ci in tests/e2e brings it"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
n=0
check() { # title, command...
  title=$1
  shift
  n=$((n + 1))
  if "$@" >"$work/log" 2>&1; then
    echo "ok $n - $title"
  else
    echo "not ok $n - $title"
    grep -v '^ok' "$work/log" | sed 's/^/# /' | head -20
  fi
}
for how in 'sendrecv external' 'io auto'; do
  set -- $how
  check "$name, 3 slices, $1, weights $2" "$tool" "$model" 3 "$work/$1-$2" "$1" "$2"
  check "$name, $1, weights $2: the chain is the model" \
    node "$e2e/chain.mjs" "$work/$1-$2" --model "$model" --name "$name"
done
echo "1..$n"

#!/bin/sh
# How long do split, --verify and verify take beside cp of the same bytes? big.sh BUILD_DIR [WORK_DIR]
#
# A model of 2.5 GiB of external weights, one of 3 GiB inline and a graph of a million small nodes
# are made in WORK_DIR (default: a temporary directory; about 12 GB are needed) and removed at the
# end. Prints wall seconds and peak memory (MB) of each command. Everything runs from a warm cache;
# each command is run three times and the median of the times is printed.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/psplit-big-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
split=$build/tools/onnx-pipeline-split
verify=$build/tools/onnx-pipeline-verify

# measure TITLE PATH_TO_REMOVE_BEFORE COMMAND...
measure() {
  title=$1 remove=$2
  shift 2
  : >times
  for _ in 1 2 3; do
    rm -rf "$remove"
    /usr/bin/time -f '%e %M' -a -o times "$@" >/dev/null
  done
  sort -n times | awk -v title="$title" '
    { seconds[NR] = $1; if ($2 > most) most = $2 }
    END { printf "%-34s %8.2f s %8.0f MB\n", title, seconds[2], most / 1000 }'
}

models() {
  kind=$1 gib=$2
  echo "$gib GiB $kind"
  /usr/bin/python3 "$here/make_big_model.py" "$kind" "$gib" model.onnx
  mkdir whole
  mv model.onnx* whole
  cat whole/* >/dev/null
  measure "  cp" copy cp -r whole copy
  rm -rf copy
  measure "  split" out "$split" whole/model.onnx -k 4 -o out -q
  measure "  verify" none "$verify" out --model whole/model.onnx
  measure "  split --verify" out "$split" whole/model.onnx -k 4 -o out -q --verify
  rm -rf out
  measure "  split, weights by reference" whole/pipeline.json \
    "$split" whole/model.onnx -k 4 -o whole --weights reference --force -q
  measure "  the same with --verify" whole/pipeline.json \
    "$split" whole/model.onnx -k 4 -o whole --weights reference --force -q --verify
  rm -rf whole
}

models external 2.5
models inline 3

for kind in chain layered; do
  echo "a million nodes, $kind"
  ninja -C "$build" --quiet tests/bench/make_big_graph
  "$build/tests/bench/make_big_graph" 1000000 "$kind" graph.onnx
  measure "  split" out "$split" graph.onnx -k 4 -o out -q
  measure "  verify" none "$verify" out --model graph.onnx
  measure "  split --verify" out "$split" graph.onnx -k 4 -o out -q --verify
  rm -rf out
done

#!/bin/sh
# Learned splits beside all else, on every list: run.sh BUILD POLICY.onnx [DIRECTORY_OF_PUBLISHED_PROBLEMS [OF_REAL_MODELS]]
# The latter are what real.py BUILD tests/bench/learned/models_kept_out.txt DIRECTORY makes; by_property.py reads what is printed.
#
# WORK (0.2): seconds of work for each solver that has no other end; PROPOSALS (32): orders for policy and chance.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
bench="$1/tests/bench/bench_learned --policy $2 --work ${WORK:-0.2} --proposals ${PROPOSALS:-32}"
for list in kept_out as_trained stages_16 stages_32 kinds_3 memory links_slow links_slower links_fast nodes_2000 \
  nodes_50000 open; do
  echo "== $list: $(sed -n '1s/^# //p' "$here/$list.txt")"
  $bench --list "$here/$list.txt"
done
[ $# -lt 4 ] || { echo "== real models" && $bench --dir "$4" --stages given; }
[ $# -lt 3 ] || { echo "== published" && $bench --dir "$3" --stages 4,8,16; }

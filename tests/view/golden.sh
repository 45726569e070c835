#!/bin/sh
# TAP: what onnx-pipeline-inspect prints for small models, byte for byte, at 1 and 8 threads.
# usage: golden.sh INSPECT MAKE_MODEL [--bless] [CASE...]
#
# A case is a file: comment lines that say why it exists, a line `args: ...` (or `split: ...`, for
# onnx-pipeline-split, which is looked for beside INSPECT), the model (docs/text-form.md, without a header
# that of make_model) after `--- model`, what is expected after `--- expected`. --bless writes the latter
# anew: read the diff. With --dump-after, the files of the dump follow each other.
set -u
inspect=$(realpath "$1") make_model=$(realpath "$2")
shift 2
bless=no
if [ "${1-}" = --bless ]; then
  bless=yes
  shift
fi
cd "$(dirname "$0")/golden" || exit 1
[ $# -gt 0 ] || set -- *.txt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

run() { # THREADS: stdout or the dump, stderr and status last
  dump=
  case $args in *--dump-after*) dump="--dump-dir $tmp/dump" ;; esac
  rm -rf "$tmp/dump"
  # shellcheck disable=SC2086  # args are words
  (cd "$tmp" && "$tool" model.onnx $args $dump --threads "$1" 2>stderr)
  status=$?
  for file in "$tmp"/dump/*; do
    [ -f "$file" ] && echo "==> ${file##*/}" && cat "$file"
  done
  cat "$tmp/stderr"
  [ $status -eq 0 ] || echo "exit status $status"
}

n=0
for case in "$@"; do
  n=$((n + 1))
  tool=$inspect
  args=$(sed -n 's/^args: //p' "$case")
  if grep -q '^split: ' "$case"; then
    tool=${inspect%/*}/onnx-pipeline-split
    args=$(sed -n 's/^split: //p' "$case")
  fi
  sed '1,/^--- model$/d; /^--- expected$/,$d' "$case" | "$make_model" "$tmp/model.onnx" || exit 1
  sed '1,/^--- expected$/d' "$case" >"$tmp/expected"
  run 1 >"$tmp/got"
  run 8 >"$tmp/got8"
  if [ $bless = yes ]; then
    sed '/^--- expected$/q' "$case" >"$tmp/case"
    cat "$tmp/case" "$tmp/got" >"$case"
    cp "$tmp/got" "$tmp/expected"
  fi
  if cmp -s "$tmp/expected" "$tmp/got" && cmp -s "$tmp/got" "$tmp/got8"; then
    echo "ok $n - ${case%.txt}"
  else
    echo "not ok $n - ${case%.txt}"
    diff "$tmp/expected" "$tmp/got" | sed 's/^/# /'
    diff "$tmp/got" "$tmp/got8" | sed 's/^/# at 8 threads: /'
  fi
done
echo "1..$n"

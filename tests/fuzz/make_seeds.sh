#!/bin/sh
# The seed corpus: make_seeds.sh MAKE_MODEL [DIRECTORY]
# Small models that between them use every field that the reader looks at, in texts/. Without DIRECTORY, says as
# TAP whether the files in seeds/ are what the texts say; with it, writes them there.
set -eu
make_model=$1
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
for text in "$here"/texts/*.onnxtxt; do
  name=$(basename "$text" .onnxtxt)
  "$make_model" "$tmp/$name" "$text"
  if [ $# -gt 1 ]; then
    cp "$tmp/$name" "$2/$name"
    continue
  fi
  n=$((n + 1))
  cmp "$tmp/$name" "$here/seeds/$name" 2>&1 | sed 's/^/# /'
  cmp -s "$tmp/$name" "$here/seeds/$name" || printf 'not '
  echo "ok $n - $name"
done
[ $# -gt 1 ] || echo "1..$n"

#!/bin/sh
# The sample that exports from PyTorch: export.sh SAMPLE. Debian's interpreter by its path: it sees python3-torch.
set -u
python=/usr/bin/python3
if ! "$python" -c 'import torch' 2>/dev/null; then
  echo '1..0 # SKIP there is no python3-torch'
  exit 0
fi
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0
if out=$("$python" "$1" "$dir/parts" 3 2>&1); then n=1; fi
if [ $n = 1 ]; then echo 'ok 1 - a PyTorch model is exported and split'; else echo 'not ok 1 - a PyTorch model is exported and split'; echo "$out" | sed 's/^/# /'; fi
if [ -f "$dir/parts/stage2.onnx" ] && [ "$(echo "$out" | grep -c '^stage')" = 3 ]; then
  echo 'ok 2 - three stages are written and told'
else
  n=0
  echo 'not ok 2 - three stages are written and told'
  echo "$out" | sed 's/^/# /'
fi
echo 1..2
[ $n = 1 ]

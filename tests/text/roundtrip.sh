#!/bin/sh
# TAP: every model at hand is what its text says: roundtrip.sh TEXT_ROUNDTRIP MAKE_MODEL
# The fuzz targets' seeds, ONNX's own test models and the model cache, as far as they are there; and the
# models in docs/text-form.md parse.
set -eu
tool=$1 make_model=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
cache=${PSPLIT_MODEL_CACHE:-$root/.cache/models}
n=0
check() { # TITLE DIRECTORY...
  title=$1
  shift
  n=$((n + 1))
  files=$(find -L "$@" -type f 2>/dev/null | grep -E '\.onnx$|/seeds/|/corpus/|/found/' | sort) || true
  if [ -z "$files" ]; then
    echo "ok $n - $title # SKIP there are none"
    return
  fi
  # xargs ends with 123 where a call fails.
  printf '%s\n' "$files" | tr '\n' '\0' | xargs -0 "$tool" >"$out" && status= || status='not '
  sed 's/^/# /' "$out"
  echo "${status}ok $n - $title"
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
out=$tmp/out
check seeds "$root/tests/fuzz/seeds" "$root/tests/fuzz/corpus" "$root/tests/fuzz/found"
check "ONNX's test models" /usr/share/libonnx-testdata
check 'the model cache' "$cache"

# Each fenced block whose first line is the start of a header.
awk -v tmp="$tmp" '/^```/ { open = !open; fresh = open && $0 == "```"; keep = 0; next }
  fresh { keep = $0 == "<"; if (keep) file = sprintf("%s/%d.onnxtxt", tmp, ++k); fresh = 0 }
  keep { print > file }' "$root/docs/text-form.md"
n=$((n + 1))
status=
[ -e "$tmp/2.onnxtxt" ] || status='not '
for text in "$tmp"/*.onnxtxt; do "$make_model" "$tmp/model.onnx" "$text" || status='not '; done
echo "${status}ok $n - the models in docs/text-form.md parse"
echo "1..$n"

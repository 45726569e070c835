#!/bin/sh
# TAP: the library's symbols are those of its public headers, so that a program may hold protobuf-c's
# code for ONNX, or names like ours, itself: exports.sh SOURCE_ROOT LIBRARY
set -eu
headers=$1/include/psplit library=$2
command -v nm >/dev/null || {
  echo '1..0 # SKIP there is no nm'
  exit 0
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# Declarations span lines; plugin.h declares what plugins export.
cat "$headers"/*.h | tr '\n' ' ' | grep -o 'PSPLIT_API[^;]*;' |
  sed -n 's/^[^(]*[ *]\(psplit_[a-z0-9_]*\)(.*/\1/p' | sort -u >"$tmp/declared"
nm -D --defined-only "$library" | awk '{ print $3 }' | grep -E '^(psplit_|onnx__)' | sort -u >"$tmp/shown"
n=0
check() { # TITLE LINES
  n=$((n + 1))
  [ -s "$2" ] && sed 's/^/# /' "$2" && printf 'not '
  echo "ok $n - $1"
}
comm -13 "$tmp/declared" "$tmp/shown" >"$tmp/more"
comm -23 "$tmp/declared" "$tmp/shown" >"$tmp/less"
[ "$(wc -l <"$tmp/declared")" -gt 40 ] || echo 'no declarations were found' >>"$tmp/less"
check 'nothing is shown that no header declares' "$tmp/more"
check 'everything that headers declare is there' "$tmp/less"
echo "1..$n"

#!/bin/sh
# The example of docs/plugin-abi.md, built as the page says against an installed copy, and run:
# installed.sh SOURCE_ROOT BUILD_ROOT CC
set -u
source=$1 build=$2 cc=$3
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
report() { # STATUS NAME
  n=$((n + 1))
  if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else
    echo "not ok $n - $2"
    sed 's/^/# /' "$tmp/log"
  fi
}

meson install -C "$build" --destdir "$tmp/root" --no-rebuild >"$tmp/log" 2>&1
report $? "meson install"
pc=$(find "$tmp/root" -name psplit.pc)
tool=$(find "$tmp/root" -path '*/bin/onnx-pipeline-split')

# The first block of C of the page is the example.
awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' "$source/docs/plugin-abi.md" >"$tmp/mine.c"
[ "$(wc -l <"$tmp/mine.c")" -le 40 ]
report $? "the example has at most 40 lines"

cd "$tmp" || exit 1
export PKG_CONFIG_PATH="$(dirname "$pc")" PKG_CONFIG_SYSROOT_DIR="$tmp/root"
# shellcheck disable=SC2046  # one word per flag
$cc -Wall -Wextra -Wconversion -Wshadow -Werror -shared -fPIC $(pkg-config --cflags psplit) mine.c \
  -o mine.so >log 2>&1
report $? "one line with pkg-config builds it"

python3 -c 'import bad_input; bad_input.write(".", "m.onnx", bad_input.chain(6))' >log 2>&1
passes=infer-shapes,cost,mark,attach,fuse,matmul-relu:limit=2,coarsen,partition,replicate
"$tool" m.onnx -k 2 -o out --load-pass-plugin ./mine.so --passes "$passes" \
  >log 2>&1
report $? "the installed tool runs it"
grep -q 'note: matmul-relu: 2 pairs' log
report $? "it does what the page says"
echo "1..$n"

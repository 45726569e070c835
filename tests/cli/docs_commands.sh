#!/bin/sh
# TAP: the sh blocks of a page run as they stand:
#   docs_commands.sh PAGE TOOLS_DIRECTORY CHECK_CERTIFICATE [runs|exports]
#
# In a folder with a model.onnx and a decoder.onnx, one after the other, with the commands of the build in
# PATH. `runs`: the page needs ONNX Runtime and MPI, and is skipped without. `exports`: python3-torch too; its first
# python block is run before, and what stands for a place or a host of the reader is this one.
set -u
page=$(realpath "$1")
tools=$(realpath "$2")
check=$(realpath "$3")
command -v python3 >/dev/null || {
  echo "1..0 # SKIP there is no python3"
  exit 0
}
here=$(dirname "$(realpath "$0")")
if [ "${4-}" = exports ] && ! /usr/bin/python3 -c 'import torch' 2>/dev/null; then
  echo "1..0 # SKIP there is no python3-torch"
  exit 0
fi
if [ -n "${4-}" ]; then
  library=$here/../e2e/node_modules/onnxruntime-node/bin/napi-v6/linux/x64/libonnxruntime.so.1
  [ -e "$library" ] && export PSPLIT_ONNXRUNTIME="${PSPLIT_ONNXRUNTIME:-$library}"
  for each in "${PSPLIT_ONNXRUNTIME:-onnxruntime}" "$(command -v mpirun || echo mpirun)" \
    "$tools/onnx-pipeline-generate"; do
    [ -e "$each" ] || {
      echo "1..0 # SKIP there is no $each"
      exit 0
    }
  done
fi
tmp=$(realpath "$(mktemp -d)")
trap 'rm -rf "$tmp"' EXIT
mkdir "$tmp/work" "$tmp/bin"
ln -s "$check" "$tmp/bin/psplit-check-certificate.py"
PATH=$tmp/bin:$tools:$PATH
export PATH
(cd "$here" && python3 -B -c 'import bad_input, decoders, sys
bad_input.write(sys.argv[1], "model.onnx", bad_input.chain(12))
bad_input.write(sys.argv[1], "decoder.onnx", decoders.decoder(4))' "$tmp/work") || exit 1
cd "$tmp/work" || exit 1
awk -v into="$tmp/block" '/^```$/ { on = 0 } on { print > (into n) } /^```sh$/ { on = 1; n++ }' "$page"
n=0
if [ "${4-}" = exports ]; then
  awk '/^```$/ && on { exit } on { print } /^```python$/ { on = 1 }' "$page" >"$tmp/export.py"
  # Debian's interpreter by its path: another python3 on PATH does not see Debian's torch.
  /usr/bin/python3 "$tmp/export.py" >"$tmp/log" 2>&1 || {
    echo "not ok 1 - the page's export"
    sed 's/^/# /' "$tmp/log"
    echo "1..1"
    exit 1
  }
  sed -i "s|/path/to/libonnxruntime.so.1|$PSPLIT_ONNXRUNTIME|; s|/path/to/|$tmp/work/|; s|python3 -c|/usr/bin/python3 -c|
    s|'first.nsecond.n'|'localhost\\\\nlocalhost\\\\n'|" "$tmp"/block*
fi
while [ -e "$tmp/block$((n + 1))" ]; do
  n=$((n + 1))
  if sh -e "$tmp/block$n" >"$tmp/log" 2>&1; then printf 'ok %s - %s\n' $n "$(head -n 1 "$tmp/block$n")"; else
    printf 'not ok %s - %s\n' $n "$(head -n 1 "$tmp/block$n")"
    sed 's/^/# /' "$tmp/log"
  fi
done
[ $n -gt 0 ] || echo "not ok 1 - $page has commands"
echo "1..$((n > 0 ? n : 1))"

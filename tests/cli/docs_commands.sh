#!/bin/sh
# TAP: the sh blocks of a page run as they stand: docs_commands.sh PAGE TOOLS_DIRECTORY CHECK_CERTIFICATE [runs]
#
# In a folder with a model.onnx and a decoder.onnx, one after the other, with the commands of the build in
# PATH. `runs`: the page needs ONNX Runtime and MPI, and is skipped without.
set -u
page=$(realpath "$1")
tools=$(realpath "$2")
check=$(realpath "$3")
command -v python3 >/dev/null || {
  echo "1..0 # SKIP there is no python3"
  exit 0
}
here=$(dirname "$(realpath "$0")")
if [ "${4-}" = runs ]; then
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
while [ -e "$tmp/block$((n + 1))" ]; do
  n=$((n + 1))
  if sh -e "$tmp/block$n" >"$tmp/log" 2>&1; then echo "ok $n - $(head -n 1 "$tmp/block$n")"; else
    echo "not ok $n - $(head -n 1 "$tmp/block$n")"
    sed 's/^/# /' "$tmp/log"
  fi
done
[ $n -gt 0 ] || echo "not ok 1 - $page has commands"
echo "1..$((n > 0 ? n : 1))"

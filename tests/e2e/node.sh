#!/bin/sh
# Runs a test script in Node, or says as TAP why it cannot be run here: node.sh SCRIPT [ARGS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "1..0 # SKIP $1"
  exit 0
}
command -v node >/dev/null || skip "there is no node"
[ -d "$here/node_modules/onnxruntime-node" ] ||
  skip "there is no onnxruntime-node; npm ci in tests/e2e brings it"

script=$1
shift
# ONNX Runtime 1.30 leaves a log in TMPDIR for each process else.
export ORT_DISABLE_TELEMETRY=1
out=$(mktemp)
trap 'rm -f "$out"' EXIT
status=0
node "$here/$script" "$@" >"$out" || status=$?
cat "$out"
# About one run in some hundreds, Node crashes in onnxruntime-node while it ends, long after the
# last check. The plan line comes last: with it, every check has had its say.
if [ "$status" = 139 ] && tail -n 1 "$out" | grep -q '^1\.\.[0-9]'; then
  echo "# node crashed while ending, after the last check"
  status=0
fi
exit "$status"

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
exec node "$here/$script" "$@"

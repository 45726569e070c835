#!/bin/sh
# Runs run.mjs in Node, or says as TAP why it cannot be run here.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "1..0 # SKIP $1"
  exit 0
}
command -v node >/dev/null || skip "there is no node"
[ -d "$here/../e2e/node_modules/onnxruntime-node" ] ||
  skip "there is no onnxruntime-node; npm ci in tests/e2e brings it"
exec node "$here/run.mjs" "$@"

#!/bin/sh
# Runs a test in Chromium, or says as TAP why it cannot be run here: page.sh SCRIPT TOOL [ARGS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
skip() {
  echo "1..0 # SKIP $1"
  exit 0
}
command -v node >/dev/null || skip "there is no node"
[ -d "$here/node_modules/playwright-core" ] ||
  skip "there is no playwright-core; npm ci in tests/view brings it"
command -v chromium >/dev/null || skip "there is no chromium"
script=$1
shift
"$1" --help >/dev/null
exec node "$here/$script" "$@"

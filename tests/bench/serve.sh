#!/bin/sh
# What does the server cost? Asks onnx-pipeline-serve for a split with one float input, with a client that exists: ab.
#
#   serve.sh BUILD_DIR DIR SECONDS DIM...
#
# Prints, for 1, 8 and 64 connections, answers a second and the latency that half and 99 of 100 stay below; before it the
# rate of onnx-pipeline-run on the same split. Binary tensors both ways. PSPLIT_SERVE_OPTIONS are more options of the
# server ("--isolate"). No test: nothing fails.
set -eu
[ $# -ge 4 ] || {
  sed -n 2,8p "$0"
  exit 2
}
build=$1 dir=$2 seconds=$3
shift 3
command -v ab >/dev/null || {
  echo 'ab is needed (Debian: apache2-utils)' >&2
  exit 1
}
tmp=$(mktemp -d)
server=
trap 'rm -rf "$tmp"; [ -z "$server" ] || kill "$server"' EXIT
elements=1
shape=
for dim; do
  elements=$((elements * dim))
  shape=$shape${shape:+,}$dim
done
# shellcheck disable=SC2086  # one word per option
"$build/serve/onnx-pipeline-serve" "$dir" --listen 127.0.0.1:0 --model-name m --max-waiting 256 ${PSPLIT_SERVE_OPTIONS-} >"$tmp/out" &
server=$!
while ! grep -q /v2/ "$tmp/out"; do
  kill -0 "$server"
  sleep 0.1
done
url=$(sed -n 's,.*\(http://[^ ]*\)/v2.*,\1,p' "$tmp/out")
input=$(curl -s "$url/v2/models/m" | sed -n 's/.*"inputs":\[{"name":"\([^"]*\)".*/\1/p')
json=$(printf '{"parameters":{"binary_data_output":true},"inputs":[{"name":"%s","shape":[%s],"datatype":"FP32",' \
  "$input" "$shape")$(printf '"parameters":{"binary_data_size":%d}}]}' $((4 * elements)))
{
  printf %s "$json"
  head -c $((4 * elements)) /dev/zero
} >"$tmp/body"
"$build/tools/onnx-pipeline-run" "$dir" --random --shape "$input=$shape" -m 200 | grep 'a second' || :
for connections in 1 8 64; do
  ab -q -k -t "$seconds" -n 10000000 -c "$connections" -p "$tmp/body" -T application/octet-stream \
    -H "Inference-Header-Content-Length: ${#json}" "$url/v2/models/m/infer" >"$tmp/ab" 2>&1 || cat "$tmp/ab"
  awk -v c="$connections" '/^Requests per second/ { rate = $4 } /^Non-2xx/ { bad = $3 } /^ *50%/ { half = $2 } /^ *99%/ { most = $2 }
    END { printf "%3d connections: %s/s, %s ms, 99 %% below %s ms, %d refused\n", c, rate, half, most, bad }' "$tmp/ab"
done

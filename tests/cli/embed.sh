#!/bin/sh
# TAP: samples/embed.c splits and proves a model, says what is wrong and what would help, and is what
# docs/library.md quotes: embed.sh SOURCE_ROOT EMBED VERIFY MAKE_MODEL
set -u
source=$1 embed=$2 verify=$3 make_model=$4
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
cat >"$tmp/model.onnxtxt" <<'END'
<ir_version: 8, opset_import: ["": 17]>
g (float[4] x) => (float[4] y) {
  a = Relu(x)
  b = Exp(a)
  c = Tanh(b)
  y = Neg(c)
}
END
"$make_model" "$tmp/model.onnx" "$tmp/model.onnxtxt" >"$tmp/log" 2>&1
report $? 'a model is made'
"$embed" "$tmp/model.onnx" 2 "$tmp/out" >"$tmp/log" 2>&1 && grep -q '^stage 1: ' "$tmp/log"
report $? 'it is split'
"$verify" "$tmp/out" --model "$tmp/model.onnx" >"$tmp/log" 2>&1
report $? 'the stages are the model'
! "$embed" "$tmp/model.onnx" 2 "$tmp/out" >"$tmp/log" 2>&1 &&
  grep -q '^IO: .*/out exists; psplit_emit_options.replace allows that$' "$tmp/log"
report $? 'a directory that is there is refused with what would help'
! "$embed" "$tmp/none.onnx" 2 "$tmp/none" >"$tmp/log" 2>&1 && grep -q '^MALFORMED: ' "$tmp/log"
report $? 'a file that is not there is no model'
[ ! -e "$tmp/none" ]
report $? 'nothing is left behind'
awk '/^```$/ { on = 0 } on { print } /^```c$/ { on = 1 }' "$source/docs/library.md" |
  diff - "$source/samples/embed.c" >"$tmp/log"
report $? 'docs/library.md quotes samples/embed.c'
echo "1..$n"

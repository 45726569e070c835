#!/bin/sh
# TAP: every option that --help prints has its entry in the manual page: man.sh MAN_DIRECTORY TOOL...
# What onnx-pipeline-inspect shares with onnx-pipeline-split stands in the page of the latter.
set -eu
pages=$1
shift
n=0
for tool; do
  name=${tool##*/}
  n=$((n + 1))
  missing=
  for option in $("$tool" --help | grep -oE -- '--[a-z][a-z-]+' | sort -u); do
    for page in "$pages/$name.1" "$pages/onnx-pipeline-split.1"; do
      # mdoc writes --name as "Fl -name" or "Fl \-name".
      grep -qE -- "Fl .?-${option#--}( |\$)" "$page" && continue 2
      [ "$name" = onnx-pipeline-inspect ] || break
    done
    missing="$missing $option"
  done
  [ -z "$missing" ] || echo "# not in $name.1:$missing"
  [ -z "$missing" ] || printf 'not '
  echo "ok $n - $name"
done
echo "1..$n"

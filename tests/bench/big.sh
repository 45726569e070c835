#!/bin/sh
# How long do split, --verify and verify take beside cp of the same bytes? big.sh BUILD_DIR [WORK_DIR]
#
# A model of 2.5 GiB of external weights, one of 3 GiB inline and graphs of a million small nodes are
# made in WORK_DIR (default: a temporary directory; about 12 GB are needed) and removed at the end.
# Prints the median of wall seconds, how often that is the median of cp, and peak memory (MB).
# Everything runs from a warm cache. The commands take turns, five times: writing speed drifts with
# what the kernel still writes back, so what runs after the others is slower whatever it is.
set -eu
build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d "${2:-${TMPDIR:-/tmp}}/psplit-big-XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
split=$build/tools/onnx-pipeline-split
verify=$build/tools/onnx-pipeline-verify

# once TITLE PATH COMMAND...: PATH is removed and the disk is left alone first.
once() {
  title=$1
  rm -rf "$2"
  shift 2
  sync
  /usr/bin/time -f "%e %M $title" -a -o times "$@" >/dev/null
}

# Medians of all titles in order of their first run, relative to the title `cp` if there is one.
report() {
  awk '
    { title = $0; sub(/^[^ ]* [^ ]* /, "", title)
      if (!(title in n)) order[++titles] = title
      seconds[title, ++n[title]] = $1
      if ($2 > most[title]) most[title] = $2 }
    function median(title, i, j, t) {
      for (i = 1; i <= n[title]; i++)
        for (j = i; j > 1 && seconds[title, j] < seconds[title, j - 1]; j--) {
          t = seconds[title, j]
          seconds[title, j] = seconds[title, j - 1]
          seconds[title, j - 1] = t
        }
      return seconds[title, int((n[title] + 1) / 2)]
    }
    END { cp = "cp" in n ? median("cp") : 0
          for (i = 1; i <= titles; i++) {
            s = median(order[i])
            printf "  %-30s %7.2f s  %s  %6.0f MB\n", order[i], s,
              cp ? sprintf("%5.2f of cp", s / cp) : "", most[order[i]] / 1000 } }' times
  rm times
}

models() {
  kind=$1 gib=$2
  echo "$gib GiB $kind"
  /usr/bin/python3 "$here/make_big_model.py" "$kind" "$gib" model.onnx
  mkdir whole
  mv model.onnx* whole
  cat whole/* >/dev/null
  model=whole/model.onnx
  for _ in 1 2 3 4 5; do
    once cp copy cp -r whole copy
    rm -rf copy
    once split out "$split" $model -k 4 --no-sync -o out -q
    once verify none "$verify" out --model $model
    once "split --verify" out "$split" $model -k 4 --no-sync -o out -q --verify
    rm -rf out
  done
  for _ in 1 2 3 4 5; do
    once "split --weights reference" whole/pipeline.json \
      "$split" $model -k 4 --no-sync -o whole --weights reference --force -q
    once "the same with --verify" whole/pipeline.json \
      "$split" $model -k 4 --no-sync -o whole --weights reference --force -q --verify
  done
  report
  rm -rf whole
}

models external 2.5
models inline 3

ninja -C "$build" --quiet tests/bench/make_big_graph
for kind in chain layered; do
  echo "a million nodes, $kind"
  "$build/tests/bench/make_big_graph" 1000000 "$kind" graph.onnx
  for _ in 1 2 3; do
    once split out "$split" graph.onnx -k 4 --no-sync -o out -q
    once verify none "$verify" out --model graph.onnx
    once "split --verify" out "$split" graph.onnx -k 4 --no-sync -o out -q --verify
    rm -rf out
  done
  report
done

#!/bin/sh
# All fuzz targets in turn, one process at a time: soak.sh HOURS [BUILD [DIRECTORY [TARGET...]]]
#
# BUILD (build-fuzz) is a build with -Dfuzz=true (docs/testing/fuzzing.md). Each target gets its share of HOURS, which
# may be a fraction; what it learns is kept in DIRECTORY/TARGET (default: BUILD/soak), which the next soak
# goes on from, and inputs that crash, hang for 60 s or take over 2 GiB in DIRECTORY/finds. A target that
# was stopped by one goes on for the rest of its time. One line for each target:
#   TARGET: N runs in S s, E edges, F finds
# Exit status: 0 without finds, 1 with.
set -eu
if [ $# -lt 1 ]; then
  sed -n '2,9s/^# \{0,1\}//p' "$0"
  exit 2
fi
hours=$1
build=${2:-build-fuzz}
kept=${3:-$build/soak}
[ $# -le 3 ] && shift $# || shift 3
here=$(cd "$(dirname "$0")" && pwd)
if [ $# -eq 0 ]; then
  for program in "$build"/tests/fuzz/fuzz_*; do
    case $program in *_replay | *.p) ;; *) set -- "$@" "$(basename "$program")" ;; esac
  done
fi
[ $# -gt 0 ] && [ -x "$build/tests/fuzz/$1" ] || {
  echo "$0: no fuzz targets in $build/tests/fuzz: meson setup -Dfuzz=true" >&2
  exit 2
}
share=$(awk -v hours="$hours" -v n=$# 'BEGIN { s = int(hours * 3600 / n); print (s > 0 ? s : 1) }')
mkdir -p "$kept/finds"
log=$kept/log
# Files that the targets write are small and many: in memory where there is such a place.
[ -n "${TMPDIR:-}" ] || { [ -d /dev/shm ] && TMPDIR=/dev/shm && export TMPDIR; } || :
# Memory that sanitizers keep after free() would count against the limit.
ASAN_OPTIONS=quarantine_size_mb=64:allocator_may_return_null=1:${ASAN_OPTIONS:-}
export ASAN_OPTIONS

# The directories that hold the target's seeds.
seeds() {
  case $1 in
    fuzz_request) echo "$here/requests" ;;
    fuzz_checkpoint) echo "$here/checkpoints" "$here/seeds" ;;
    fuzz_text) echo "$here/seeds" "$here/found" "$here/../text/cases" ;;
    *) if [ -d "$here/inputs/$1" ]; then echo "$here/inputs/$1"; else echo "$here/seeds" "$here/found" "$here/corpus"; fi ;;
  esac
}

number() { # the last "stat::NAME: N" of the log
  awk -v name="stat::$1:" '$1 == name { n = $2 } END { print n + 0 }' "$log"
}

failed=0
for target in "$@"; do
  mkdir -p "$kept/$target"
  dictionary=
  [ -f "$here/dictionaries/$target.dict" ] && dictionary=-dict=$here/dictionaries/$target.dict
  begin=$(date +%s)
  runs=0 finds=0 edges=0
  while
    left=$((share - $(date +%s) + begin))
    [ $left -gt 0 ]
  do
    status=0
    # shellcheck disable=SC2046,SC2086 # lists of words
    "$build/tests/fuzz/$target" -entropic=0 -max_len=4096 -timeout=60 -rss_limit_mb=2048 -max_total_time=$left \
      -print_final_stats=1 -artifact_prefix="$kept/finds/$target-" $dictionary "$kept/$target" $(seeds "$target") \
      > "$log" 2>&1 || status=$?
    runs=$((runs + $(number number_of_executed_units)))
    seen=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -1)
    [ "${seen:-0}" -gt "$edges" ] && edges=$seen
    if [ $status -ne 0 ]; then
      finds=$((finds + 1)) failed=1
      cp "$log" "$kept/finds/$target-$finds.log"
      # A seed that fails stops it at once, again and again.
      [ $finds -lt 20 ] || break
    fi
  done
  echo "$target: $runs runs in $(($(date +%s) - begin)) s, $edges edges, $finds finds"
done
exit $failed

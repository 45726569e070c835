#!/bin/sh
# TAP: the options of --help and those of the manual page are the same, and its statuses are told; --help has lines of
# at most 100 columns: man.sh MAN_DIRECTORY TOOL...
set -eu
pages=$1
shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
report() { # NAME FILE_OF_WHAT_IS_WRONG
  n=$((n + 1))
  [ ! -s "$2" ] || echo "# $1:" $(cat "$2")
  [ ! -s "$2" ] || printf 'not '
  echo "ok $n - $1"
}
# mdoc writes --name as "Fl -name", "Fl \-name", and after a comma as "-name".
entries() { sed -n 's/^\.It //p' "$@" | grep -oE '(Fl .?-|, -)[a-z][a-z-]+' | sed 's/.*[ \]-/--/' | sort -u; }
for tool; do
  name=${tool##*/}
  page=$pages/$name.1
  "$tool" --help | awk 'length > 100' >"$tmp/long"
  report "$name --help has no line of more than 100 columns" "$tmp/long"
  "$tool" --help | sed -nE 's/^  (-., |    )(--[a-z-]+).*/\2/p' | sort -u >"$tmp/help"
  entries "$page" >"$tmp/page"
  comm -23 "$tmp/help" "$tmp/page" >"$tmp/missing"
  report "$name.1 has all options" "$tmp/missing"
  comm -13 "$tmp/help" "$tmp/page" >"$tmp/gone"
  report "$name.1 has no other" "$tmp/gone"
  # What every command ends with at a signal, see tools/interrupt.h.
  sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/p' "$page" >"$tmp/statuses"
  for status in 129 130 143; do
    grep -qw "$status" "$tmp/statuses" || echo "$status"
  done >"$tmp/untold"
  report "$name.1 says what signals end it with" "$tmp/untold"
done
echo "1..$n"

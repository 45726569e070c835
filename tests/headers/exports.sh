#!/bin/sh
# TAP: a library's symbols are those of its public headers, so that a program may hold protobuf-c's
# code for ONNX, or names like ours, itself; beside them, under a version of their own, those that our
# other libraries take, and no more; the commands take none of these, so that they go with any release
# of the API: exports.sh SOURCE_ROOT LIBRARY... -- COMMAND...
#
# Each library lends to those behind it, if they are built.
set -eu
headers=$1/include/psplit
shift
command -v nm >/dev/null || {
  echo '1..0 # SKIP there is no nm'
  exit 0
}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# Declarations span lines; plugin.h declares what plugins export.
declared() { # HEADER...
  cat "$@" | tr '\n' ' ' | grep -o 'PSPLIT_API[^;]*;' |
    sed -n 's/^[^(]*[ *]\(psplit_[a-z0-9_]*\)(.*/\1/p' | sort -u
}
shown() { # LIBRARY: names, what is private with its version
  nm -D --defined-only "$1" | awk '{ print $3 }' | grep -E '^(psplit_|onnx__)' |
    sed -e 's/@@*PSPLIT[A-Z_]*_PRIVATE_.*/ private/' -e 's/@@*PSPLIT.*//' | sort -u
}
# Headers of libraries other than libpsplit.
of_run='checkpoint generate profile run run_gradients run_service train'
of_run_mpi='generate_mpi run_mpi'
in_headers() { # NAME...: paths
  for each; do printf '%s ' "$headers/$each.h"; done
}
n=0
# shellcheck disable=SC2046,SC2086  # a word for each header
check() { # TITLE LINES
  n=$((n + 1))
  [ -s "$2" ] && sed 's/^/# /' "$2" && printf 'not '
  echo "ok $n - $1"
}
while [ "$1" != -- ]; do
  library=$1
  shift
  name=$(basename "$library" | sed 's/\.so.*//')
  case $name in
    libpsplit-run) least=15; declared $(in_headers $of_run) ;;
    libpsplit-run-mpi) least=4; declared $(in_headers $of_run_mpi) ;;
    *) least=40
      declared $(find "$headers" -name '*.h' | grep -vxF "$(in_headers $of_run $of_run_mpi | tr ' ' '\n')") ;;
  esac >"$tmp/declared"
  shown "$library" >"$tmp/all"
  grep -v ' private$' "$tmp/all" >"$tmp/shown"
  sed -n 's/ private$//p' "$tmp/all" >"$tmp/lent"
  comm -13 "$tmp/declared" "$tmp/shown" >"$tmp/more"
  comm -23 "$tmp/declared" "$tmp/shown" >"$tmp/less"
  [ "$(wc -l <"$tmp/declared")" -ge $least ] || echo 'no declarations were found' >>"$tmp/less"
  check "$name: nothing is shown that no header declares" "$tmp/more"
  check "$name: everything that headers declare is there" "$tmp/less"
  [ "$1" != -- ] || continue # nobody in this build is lent anything
  for user; do
    [ "$user" != -- ] || break
    nm -D --undefined-only "$user"
  done |
    sed -n 's/.* \(psplit_i_[a-z0-9_]*\).*/\1/p' | sort -u >"$tmp/taken"
  comm -23 "$tmp/lent" "$tmp/taken" >"$tmp/more"
  check "$name: it lends our other libraries what they take, and no more" "$tmp/more"
done
shift
for command; do nm -D --undefined-only "$command" | sed -n "s|.* \(psplit_i_[^@]*\).*|${command##*/}: \1|p"; done >"$tmp/more"
check "the commands take the API alone" "$tmp/more"
echo "1..$n"

#!/bin/sh
# What the tests reach: sh tests/coverage.sh [SUITE...]
#
# Builds with clang's source-based coverage in build-coverage/, runs the suites (default: those below, and of
# suite e2e what merges, differentiates and infers shapes; its real models would add time and nothing else), and
# prints lines and branches by component and the files that are reached least: tests/coverage.py. Without SUITE the
# figures are held: status 1 where one is below tests/coverage.floors. Needs llvm-profdata and llvm-cov of clang's
# version (Debian: llvm).
set -eu
cd "$(dirname "$0")/.."
build=build-coverage
PSPLIT_MODEL_CACHE=${PSPLIT_MODEL_CACHE:-$PWD/.cache/models}
# Processes of one program count in one of four files, which they share (%4m) and have mapped from their start
# (%c): so what ended by a signal or by _exit has counted too, and nothing is written or allocated at the end,
# where tests let calls fail.
LLVM_PROFILE_FILE=$PWD/$build/profiles/%c%4m.profraw
export PSPLIT_MODEL_CACHE LLVM_PROFILE_FILE
version=$(clang -dumpversion | sed 's/\..*//')
tool() { command -v "$1-$version" || command -v "$1" || { echo "$0: no $1; apt-get install llvm" >&2; exit 2; }; }
profdata=$(tool llvm-profdata)
cov=$(tool llvm-cov)

flags='-fprofile-instr-generate -fcoverage-mapping -mllvm -runtime-counter-relocation -Wno-unused-command-line-argument'
grep -q runtime-counter-relocation "$build/build.ninja" 2> /dev/null || {
  rm -rf "$build"
  CC=${CC:-clang} meson setup "$build" --buildtype=debugoptimized -Doptimization=1 -Db_ndebug=true \
    -Dc_args="$flags" -Dc_link_args="$flags"
}
ninja -C "$build" --quiet
rm -rf "$build/profiles"
mkdir -p "$build/profiles"
some=
floors=
if [ $# -eq 0 ]; then
  floors='--floors tests/coverage.floors'
  set -- unit oom cli verify emit golden plugin property fuzz-replay runtime generate serve testdata
  some='merge merge-wakeword merged_then merged_twice merged_inside gradient-operators gradient-families
    gradient-choices gradient-edges gradient-lowered gradient-training-info shapes-cases shapes-contrib
    shapes-refused shapes-fixtures shapes-node shapes-simple'
fi
suites=
for suite in "$@"; do suites="$suites --suite $suite"; done
# shellcheck disable=SC2086 # a list of words
meson test -C "$build" --no-rebuild --timeout-multiplier 4 $suites --no-suite matrix > "$build/tests.log" 2>&1 ||
  echo "some tests failed (they are slower here): $build/tests.log"
# shellcheck disable=SC2086 # a list of words
[ -z "$some" ] || meson test -C "$build" --no-rebuild --timeout-multiplier 4 $some > "$build/tests-e2e.log" 2>&1 ||
  echo "some tests failed (they are slower here): $build/tests-e2e.log"
"$profdata" merge -sparse -o "$build/all.profdata" "$build"/profiles/*.profraw
objects=
for file in "$build"/libpsplit*.so "$build"/tools/onnx-pipeline-* "$build"/serve/onnx-pipeline-*; do
  case $file in *.p | *.sym* | *.1) ;; *) [ ! -f "$file" ] || objects="$objects -object $file" ;; esac
done
# shellcheck disable=SC2086 # a list of words
"$cov" export -skip-functions -instr-profile "$build/all.profdata" $objects > "$build/coverage.json"
# shellcheck disable=SC2086 # a list of words
python3 tests/coverage.py "$build/coverage.json" $floors

#!/bin/sh
# What reads the code, or watches it run, beside the sanitizers: analyse.sh TOOL [ARGUMENT...]
#
#   clang-tidy [FILE...]   the checks of .clang-tidy over FILEs (default: all C files but tests and samples);
#                          needs a build in build-test/
#   gcc-analyzer [FILE...] gcc's -fanalyzer over the same files, one at a time; needs a build in build-test/
#   msan [PROGRAM...]      clang's MemorySanitizer over unit tests that call no library which is not built with it
#                          (OpenMP's, protobuf-c); builds them in build-msan/
#   valgrind [PROGRAM...]  memcheck over unit tests, as tests/base/test_base; builds them in build-valgrind/
#
# Exit status: 0 without findings, 2 where something is missing, otherwise that of the tool.
set -eu
cd "$(dirname "$0")/.."
tool=${1:-}
[ $# -eq 0 ] || shift
needs() { command -v "$1" > /dev/null || { echo "$0: no $1" >&2; exit 2; }; }

# All sources that are ours and that the build has.
sources() {
  sed -n 's|.*"file": "\.\./\([^"]*\.c\)".*|\1|p' build-test/compile_commands.json | sort -u |
    grep -v -e '^tests/' -e '^samples/'
}

case $tool in
  clang-tidy)
    needs clang-tidy
    [ -f build-test/compile_commands.json ] || { echo "$0: no build-test/, see docs/testing.md" >&2; exit 2; }
    # shellcheck disable=SC2046 # a list of words
    [ $# -gt 0 ] || set -- $(sources)
    printf '%s\n' "$@" | xargs -P 2 -n 4 clang-tidy -p build-test --quiet --extra-arg=-U_FORTIFY_SOURCE
    ;;
  gcc-analyzer)
    needs gcc
    [ -f build-test/compile_commands.json ] || { echo "$0: no build-test/, see docs/testing.md" >&2; exit 2; }
    # shellcheck disable=SC2046 # a list of words
    [ $# -gt 0 ] || set -- $(sources)
    python3 tests/gcc_analyzer.py build-test "$@"
    ;;
  msan)
    needs clang
    [ $# -gt 0 ] || set -- tests/base/test_base tests/base/test_out_file tests/base/test_counter_random \
      tests/base/test_draw tests/policy/test_gradients tests/policy/test_outlook tests/partition/test_lists \
      tests/partition/test_chain
    # Version 14 knows fstat and its like, but not fstat64: on 64-bit machines both are one.
    [ -f build-msan/build.ninja ] ||
      CC=clang meson setup build-msan --buildtype=plain -Db_lundef=false -Dmpi=none -Dc_link_args=-fsanitize=memory \
        -Dc_args='-O1 -g -UNDEBUG -U_FILE_OFFSET_BITS -fsanitize=memory -fsanitize-memory-track-origins'
    ninja -C build-msan --quiet "$@"
    for program in "$@"; do "build-msan/$program"; done
    ;;
  valgrind)
    needs valgrind
    [ $# -gt 0 ] || set -- tests/base/test_base tests/onnx/test_skeleton tests/onnx/test_graph tests/partition/test_lists
    # Its version 3.19 does not read the fifth version of debugging symbols as clang writes them.
    [ -f build-valgrind/build.ninja ] ||
      CC=clang meson setup build-valgrind --buildtype=plain -Dc_args='-O1 -g -gdwarf-4' -Dmpi=none
    ninja -C build-valgrind --quiet "$@"
    for program in "$@"; do
      valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite "build-valgrind/$program"
    done
    ;;
  *)
    sed -n '2,11p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
    ;;
esac

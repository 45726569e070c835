#!/bin/sh
# What reads the code, or watches it run, beside the sanitizers: analyse.sh TOOL [ARGUMENT...]
#
#   clang-tidy [FILE...]   the checks of .clang-tidy over FILEs (default: all C files but tests and samples);
#                          needs a build in build-test/
#   gcc-analyzer [FILE...] gcc's -fanalyzer over the same files, one at a time; needs a build in build-test/
#   msan [TEST...]         clang's MemorySanitizer over tests of C programs; builds them in build-msan/. What is not built
#                          with it must not be called: OpenMP is left out, and protobuf-c comes from PSPLIT_PROTOBUF_C, a
#                          directory with its source; without one, name tests that do not call it
#   valgrind [TEST...]     memcheck over tests of C programs, as `base`; builds them in build-valgrind/
#
# Without TEST the last two run all tests of C programs but those that analysed.txt leaves out, with why.
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
    PSPLIT_PROTOBUF_C=${PSPLIT_PROTOBUF_C:-}
    [ $# -gt 0 ] || [ -n "$PSPLIT_PROTOBUF_C" ] || { echo "$0: PSPLIT_PROTOBUF_C is not set" >&2; exit 2; }
    flags='-O1 -g -U_FORTIFY_SOURCE -fsanitize=memory -fsanitize-memory-track-origins'
    if [ -n "$PSPLIT_PROTOBUF_C" ]; then
      PSPLIT_PROTOBUF_C=$(realpath "$PSPLIT_PROTOBUF_C")
      mkdir -p build-protobuf-c
      # shellcheck disable=SC2086 # a list of words
      clang $flags -fPIC -I "$PSPLIT_PROTOBUF_C" -c "$PSPLIT_PROTOBUF_C/protobuf-c/protobuf-c.c" -o build-protobuf-c/all.o
      ar rc build-protobuf-c/libprotobuf-c.a build-protobuf-c/all.o
      printf 'Name: libprotobuf-c\nDescription: with MemorySanitizer\nVersion: 1.4.1\nCflags: -I%s\nLibs: %s\n' \
        "$PSPLIT_PROTOBUF_C" "$PWD/build-protobuf-c/libprotobuf-c.a" > build-protobuf-c/libprotobuf-c.pc
      export PKG_CONFIG_PATH="$PWD/build-protobuf-c"
    fi
    # Version 14 knows fstat and its like, but not fstat64: on 64-bit machines both are one.
    [ -f build-msan/build.ninja ] ||
      CC=clang meson setup build-msan --buildtype=plain -Db_lundef=false -Dmpi=none -Dpython=disabled \
        -Dc_link_args=-fsanitize=memory -Dc_args="$flags -UNDEBUG -U_FILE_OFFSET_BITS -DPSPLIT_I_ONE_THREAD"
    # Meson takes 77, which is MemorySanitizer's own status, for a test that is skipped.
    export MSAN_OPTIONS=exitcode=1
    [ $# -gt 0 ] || names=$(python3 tests/analysed.py build-msan msan)
    # shellcheck disable=SC2086 # a list of words
    meson test -C build-msan --print-errorlogs --timeout-multiplier 20 ${names:-"$@"}
    ;;
  valgrind)
    needs valgrind
    # Its version 3.19 does not read the fifth version of debugging symbols as clang writes them.
    [ -f build-valgrind/build.ninja ] ||
      CC=clang meson setup build-valgrind --buildtype=plain -Dc_args='-O1 -g -gdwarf-4' -Dmpi=none
    [ $# -gt 0 ] || names=$(python3 tests/analysed.py build-valgrind valgrind)
    # shellcheck disable=SC2086 # a list of words
    meson test -C build-valgrind --print-errorlogs --timeout-multiplier 50 \
      --wrapper 'valgrind --quiet --error-exitcode=1 --leak-check=full --errors-for-leak-kinds=definite' ${names:-"$@"}
    ;;
  *)
    sed -n '2,13p' "$0" | sed 's/^# \{0,1\}//'
    exit 2
    ;;
esac

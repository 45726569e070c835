#!/bin/sh
# What reads the code, or watches it run, beside the sanitizers: analyse.sh TOOL [ARGUMENT...]
#
#   clang-tidy [FILE...]   the checks of .clang-tidy over FILEs (default: all C files but tests and samples);
#                          needs a build in build-test/
#   gcc-analyzer [FILE...] gcc's -fanalyzer over the same files, one at a time; needs a build in build-test/
#   msan [PROGRAM...]      clang's MemorySanitizer over unit tests; builds them in build-msan/. What is not built with
#                          it must not be called: OpenMP is left out, and protobuf-c comes from PSPLIT_PROTOBUF_C, a
#                          directory with its source; without one, only tests that do not call it
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
    PSPLIT_PROTOBUF_C=${PSPLIT_PROTOBUF_C:-}
    [ $# -gt 0 ] || {
      set -- tests/base/test_base tests/base/test_out_file tests/base/test_counter_random tests/base/test_draw \
        tests/schedule/test_schedule tests/policy/test_gradients tests/policy/test_outlook tests/policy/test_schedules
      for topic in lists chain proof certificate proposals reduce ties messages blocks apart wide heavy recombine calls crossings baselines partition_property; do
        set -- "$@" tests/partition/test_$topic
      done
      [ -z "$PSPLIT_PROTOBUF_C" ] || set -- "$@" tests/cli/test_advice tests/json/test_json_files \
        tests/onnx/test_skeleton tests/onnx/test_graph tests/onnx/test_tensor tests/onnx/test_external \
        tests/text/test_text tests/shapes/test_dims tests/shapes/test_devices tests/shapes/test_infer \
        tests/shapes/test_operators tests/costs/test_costs tests/gradient/test_table tests/training/test_masks \
        tests/emit/test_emit tests/emit/test_emit_inside tests/emit/test_new_values tests/view/test_scope \
        tests/passes/test_passes tests/passes/test_patterns tests/passes/test_property tests/passes/test_repeats \
        tests/passes/test_grouping tests/passes/test_layouts tests/passes/test_links tests/passes/test_copies \
        tests/passes/test_messages tests/passes/test_overlap tests/passes/test_segments tests/passes/test_device_order
    }
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
    ninja -C build-msan --quiet "$@"
    for program in "$@"; do "build-msan/$program"; done
    ;;
  valgrind)
    needs valgrind
    [ $# -gt 0 ] || set -- tests/base/test_base tests/base/test_out_file tests/base/test_json_tree tests/base/test_draw \
      tests/base/test_counter_random tests/onnx/test_skeleton tests/onnx/test_graph tests/onnx/test_tensor \
      tests/onnx/test_external tests/text/test_text tests/shapes/test_dims tests/shapes/test_devices \
      tests/shapes/test_infer tests/costs/test_costs tests/gradient/test_table tests/emit/test_emit \
      tests/emit/test_new_values tests/cli/test_advice tests/view/test_scope tests/policy/test_outlook \
      tests/partition/test_lists tests/partition/test_proof
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

#!/bin/sh
# The suites under the sanitizers: sh tests/sanitize.sh
#
# AddressSanitizer and UndefinedBehaviorSanitizer (build-asan/) over the suites below and the
# end-to-end tests of two small models; ThreadSanitizer (build-tsan/) over unit and golden, which run
# the threaded parts at 1 and 8 threads, serve, and runs of stages as threads, of generating too. Builds with clang
# what is not built; packages and models are those that tests/run.sh installs. Status 0 only if every test passed.
set -eu
cd "$(dirname "$0")/.."
PSPLIT_MODEL_CACHE=${PSPLIT_MODEL_CACHE:-$PWD/.cache/models}
# Whole stacks of allocations, for tests/lsan.supp to know whose they are.
ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1:fast_unwind_on_malloc=0}
LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$PWD/tests/lsan.supp:print_suppressions=0}
UBSAN_OPTIONS=${UBSAN_OPTIONS:-halt_on_error=1:print_stacktrace=1}
# libomp is not instrumented: what its own threads do to each other is not ours to judge. A server that a stage keeps
# from its end leaves its threads, which is tested; so is how soon a command ends, so it does not sleep at its end.
TSAN_OPTIONS=${TSAN_OPTIONS:-ignore_noninstrumented_modules=1:report_thread_leaks=0:atexit_sleep_ms=0}
export PSPLIT_MODEL_CACHE ASAN_OPTIONS LSAN_OPTIONS UBSAN_OPTIONS TSAN_OPTIONS
status=0

build() {
  dir=$1 sanitizers=$2
  [ -f "$dir/build.ninja" ] ||
    CC=clang meson setup "$dir" "-Db_sanitize=$sanitizers" -Db_lundef=false
  ninja -C "$dir" --quiet
}

# run DIR ARGUMENT...: what of meson test; sanitizers are slow, so tests get more time.
run() {
  dir=$1
  shift
  meson test -C "$dir" --no-rebuild --print-errorlogs --timeout-multiplier 5 "$@" || status=1
}

build build-asan address,undefined
run build-asan --suite unit --suite property --suite cli --suite verify --suite emit --suite fuzz-replay \
  --suite golden --suite plugin --suite oom
for model in wakeword silero_legacy; do
  run build-asan $model-2-sendrecv $model-2-io
done
build build-tsan thread
# What tells ThreadSanitizer of OpenMP's barriers stands beside the library.
libomp=$(ldd build-tsan/libpsplit.so | awk '/libomp/ { print $3 }')
OMP_TOOL_LIBRARIES=$(dirname "$(readlink -f "$libomp")")/libarcher.so
export OMP_TOOL_LIBRARIES
run build-tsan --suite unit --suite golden --suite serve
run build-tsan service bounded stream replicas one_device sessions resume train train-faults interrupt-twice
run build-tsan generate odd-decoders encoded-made
exit $status

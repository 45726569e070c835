#!/bin/sh
# Builds and runs every test: sh tests/run.sh
#
# Installs what is missing (Debian packages; npm packages into tests/e2e, tests/view and view/page), fills the model cache,
# builds with clang and, beside all else, with gcc at -O3 and without assertions, as packages may be (compiling is the
# test), and runs all suites of docs/testing.md.
# The last line counts single checks: N passed, M failed, K skipped.
set -eu
cd "$(dirname "$0")/.."
PSPLIT_MODEL_CACHE=${PSPLIT_MODEL_CACHE:-$PWD/.cache/models}
export PSPLIT_MODEL_CACHE

# What stops the run before any test is a failure that counts too.
stop() {
  echo "tests/run.sh: $1 failed"
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

# build DIRECTORY COMPILER TYPE NICENESS [OPTION...]
build() {
  dir=$1 compiler=$2 type=$3 niceness=$4
  shift 4
  echo "==> building with $compiler in $dir/, $type"
  if [ ! -f "$dir/build.ninja" ]; then
    CC=$compiler meson setup "$dir" "--buildtype=$type" -Dwerror=true "$@" || return 1
  fi
  nice -n "$niceness" ninja -C "$dir" --quiet
}

# What the libraries and all tests are compiled with first: both build while the others, and models, come over the network.
sh samples/install.sh clang:clang gcc:gcc meson:meson ninja-build:ninja pkg-config:pkg-config make:make \
  libomp-dev libprotobuf-c-dev protobuf-c-compiler:protoc-c protobuf-compiler:protoc \
  libjansson-dev libcmocka-dev libmicrohttpd-dev zlib1g-dev mpich libmpich-dev nodejs:node npm:npm ca-certificates \
  clang-format-14:clang-format-14 python3-dev || stop "installing packages"

# Most of the time of a run goes into starting processes and mapping pages where these are slow (nested virtual machines):
# large blocks of malloc are mapped as huge pages, and scripts start python3 itself instead of a version manager's shim.
export GLIBC_TUNABLES="${GLIBC_TUNABLES:+$GLIBC_TUNABLES:}glibc.malloc.hugetlb=1"
interpreter=$(python3 -c 'import sys; print(sys.executable)') && PATH=$(dirname "$interpreter"):$PATH

logs=$(mktemp -d)
trap 'wait; rm -rf "$logs"' EXIT
build build-test clang debugoptimized 0 -Ddebug=false >"$logs/clang" 2>&1 &
clang_pid=$!
# Nothing waits for it but the last line: it takes what clang, and then tests that wait, leave idle.
build build-gcc-release gcc release 19 >"$logs/gcc" 2>&1 &
gcc_pid=$!

sh samples/install.sh cmake:cmake libonnx-dev libonnx-testdata chromium graphviz:dot zsh:zsh fish:fish \
  python3-numpy python3-onnx python3-torch python3-torchvision || stop "installing packages"

for each in tests/e2e tests/view; do
  cmp -s $each/package-lock.json $each/node_modules/.installed && continue
  echo "==> installing npm packages in $each"
  (cd $each && npm ci --silent --ignore-scripts) || stop "npm ci in $each"
  cp $each/package-lock.json $each/node_modules/.installed
done

sh tests/models/fetch.sh >"$logs/models" 2>&1 &
models_pid=$!
clang=passed
wait $clang_pid || clang=failed
cat "$logs/clang"
[ $clang = passed ] || stop "building with clang"

echo "==> test models in $PSPLIT_MODEL_CACHE"
models=passed
wait $models_pid || models=failed
cat "$logs/models"
[ $models = passed ] || stop "filling the model cache"

echo "==> running the tests"
# More at a time than twice the processors: many wait, for signals, other ranks and time-outs.
meson test -C build-test --no-rebuild --print-errorlogs --num-processes $((2 * $(nproc) + 1)) || true # summary.py judges
gcc=passed
wait $gcc_pid || gcc=failed
cat "$logs/gcc"
/usr/bin/python3 tests/summary.py build-test/meson-logs/testlog.json "gcc build=$gcc"

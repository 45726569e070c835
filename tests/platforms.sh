#!/bin/sh
# Other platforms: sh tests/platforms.sh DIRECTORY BUILD [MODEL...]
#
# In a Debian 12 of its own below DIRECTORY (about 1.5 GB, fetched by debootstrap) the library and the
# commands that run no stages are cross-compiled with gcc for arm64 and for s390x, which is big-endian
# and has libgomp alone, and run under qemu-user: each MODEL (default: five of the model cache) is split
# in three, proved and inspected, one of them also for training, and what is written is compared byte for
# byte with what BUILD, of this machine, writes. Needs root, for chroot; no part of the test run. Run
# again on the same DIRECTORY it builds what has changed alone.
set -eu
into=${1:?usage: sh tests/platforms.sh DIRECTORY BUILD [MODEL...]}
build=$(realpath "${2:?usage: sh tests/platforms.sh DIRECTORY BUILD [MODEL...]}")
shift 2
source=$(realpath "$(dirname "$0")/..")
mkdir -p "$into"
into=$(realpath "$into")
root=$into/root
cache=${PSPLIT_MODEL_CACHE:-$source/.cache/models}
[ $# -gt 0 ] || set -- "$cache/mobilenet_v3_small.onnx" "$cache/ppocr_rec.onnx" "$cache/retinaface.onnx" \
  "$cache/silero_v5.onnx" "$cache/whisper_tiny_encoder.onnx"
platforms='arm64:aarch64:little s390x:s390x:big'

inside() { chroot "$root" env -C / LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin "$@"; }

if [ ! -e "$into/ready" ]; then
  command -v debootstrap >/dev/null || {
    echo "debootstrap is needed: apt-get install debootstrap" >&2
    exit 1
  }
  debootstrap --variant=minbase --include=ca-certificates bookworm "$root"
  packages=
  for each in $platforms; do
    debian=${each%%:*} cpu=${each#*:}
    cpu=${cpu%:*}
    inside dpkg --add-architecture "$debian"
    packages="$packages gcc-$cpu-linux-gnu libc6-dev-$debian-cross libprotobuf-c-dev:$debian libgomp1:$debian"
  done
  inside apt-get update
  # shellcheck disable=SC2086  # a word a package
  inside env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends gcc libc6-dev \
    meson ninja-build pkg-config protobuf-c-compiler qemu-user $packages
  touch "$into/ready"
fi

rm -rf "$into/now" "$root/models" "$into/here"
mkdir -p "$root/source" "$root/models" "$into/now" "$into/here"
(cd "$source" && git ls-files -z | tar cf - --null -T - --mode=u+w) | tar xf - -C "$into/now"
# Files whose bytes are new get a new time, for ninja.
(cd "$into/now" && find . -type f) | while read -r file; do
  cmp -s "$into/now/$file" "$root/source/$file" && continue
  mkdir -p "$(dirname "$root/source/$file")"
  cp "$into/now/$file" "$root/source/$file"
  touch "$root/source/$file"
done
cp -L "$@" "$root/models/"

# make_all RUN MODELS OUT: what `RUN TOOL OPTION...` makes of each model
make_all() {
  for model in "$root"/models/*.onnx; do
    name=$(basename "$model" .onnx)
    "$1" split "$2/$name.onnx" -k 3 -o "$3/$name" --force --quiet
    "$1" verify "$3/$name" --model "$2/$name.onnx" --quiet
    for format in json html; do
      "$1" inspect "$2/$name.onnx" -k 3 --format $format -o "$3/$name/$format" --quiet
    done
    [ "$name" != mobilenet_v3_small ] || "$1" split "$2/$name.onnx" -k 3 -o "$3/training" --force --quiet \
      --training --loss softmax-cross-entropy --dim batch=1
  done
}
here() {
  tool=$1
  shift
  "$build/tools/onnx-pipeline-$tool" "$@"
}
there() { # on $cpu
  tool=$1
  shift
  inside "qemu-$cpu" "/build-$cpu/tools/onnx-pipeline-$tool" "$@"
}

# Pages name the file of the model.
ln -sfn "$root/models" "$into/models"
(cd "$into" && make_all here models here)
differs=0
for each in $platforms; do
  debian=${each%%:*} endian=${each##*:} cpu=${each#*:}
  cpu=${cpu%:*}
  triple=$cpu-linux-gnu
  printf '#!/bin/sh\nPKG_CONFIG_LIBDIR=/usr/lib/%s/pkgconfig:/usr/share/pkgconfig exec pkg-config "$@"\n' \
    "$triple" >"$root/usr/local/bin/$triple-pkg-config"
  chmod +x "$root/usr/local/bin/$triple-pkg-config"
  cat >"$root/cross-$cpu.ini" <<END
[binaries]
c = '$triple-gcc'
ar = '$triple-ar'
strip = '$triple-strip'
pkgconfig = '/usr/local/bin/$triple-pkg-config'
exe_wrapper = 'qemu-$cpu'
[host_machine]
system = 'linux'
cpu_family = '$cpu'
cpu = '$cpu'
endian = '$endian'
END
  [ -e "$root/build-$cpu/build.ninja" ] || inside meson setup "/build-$cpu" /source --cross-file "/cross-$cpu.ini" \
    --buildtype=release -Dtests=false -Druntime=disabled -Dpython=disabled -Dserver=disabled >"$into/log" ||
    { cat "$into/log"; exit 1; }
  inside ninja -C "/build-$cpu" --quiet
  rm -rf "$root/out"
  mkdir "$root/out"
  make_all there models out
  for of in "$into"/here/*; do
    name=${of##*/}
    if diff -rq "$of" "$root/out/$name"; then
      echo "$debian: $name: the same $(find "$of" -type f | wc -l) files, $(du -sbL "$of" | cut -f1) bytes"
    else
      differs=1
    fi
  done
done
[ $differs = 0 ] && echo "every file is the same"
exit $differs

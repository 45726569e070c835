#!/bin/bash -eu
# Builds every fuzz target into $OUT with its seeds and its dictionary, in the way of OSS-Fuzz: run there by
# its build container, which sets SRC, WORK, OUT, CC, CFLAGS. Elsewhere (docs/testing/fuzzing.md):
#   SRC=$PWD WORK=/tmp/w OUT=/tmp/out CC=clang CFLAGS="-O1 -g -fsanitize=address" bash tests/fuzz/oss-fuzz/build.sh
cd "$(dirname "$0")"
[ -d "$SRC/onnx-pipeline-split" ] && cd "$SRC/onnx-pipeline-split/tests/fuzz" || cd ..
fuzz=$PWD

# plain: CFLAGS alone say how to optimise. Archives, since nothing is installed where the targets run.
meson setup "$WORK/build" "$fuzz/../.." --buildtype=plain -Dfuzz=true -Ddefault_library=static -Db_lundef=false \
  -Dmpi=none -Dserver=disabled -Dpython=disabled -Dc_link_args="${CFLAGS:-} -Wl,-rpath,'\$ORIGIN/lib'"
targets=$(ninja -C "$WORK/build" -t targets all | sed -n 's|^tests/fuzz/\(fuzz_[a-z]*\):.*|\1|p')
# shellcheck disable=SC2086 # a list of words
ninja -C "$WORK/build" $(printf 'tests/fuzz/%s ' $targets)

mkdir -p "$OUT/lib"
for target in $targets; do
  program=$WORK/build/tests/fuzz/$target
  cp "$program" "$OUT/"
  ldd "$program" | sed -n 's,.* => \(/[^ ]*/lib\(omp\|protobuf-c\|jansson\)[^ ]*\) .*,\1,p' | xargs -r cp -Lt "$OUT/lib"
  case $target in
    fuzz_request) seeds="requests" ;;
    fuzz_checkpoint) seeds="checkpoints seeds" ;;
    fuzz_text) seeds="seeds found ../text/cases" ;;
    *) seeds="seeds found corpus" ;;
  esac
  [ -d "$fuzz/inputs/$target" ] && seeds=inputs/$target
  (cd "$fuzz" && zip -qj "$OUT/${target}_seed_corpus.zip" $(find $seeds -type f))
  [ -f "$fuzz/dictionaries/$target.dict" ] && cp "$fuzz/dictionaries/$target.dict" "$OUT/"
  printf '[libfuzzer]\nmax_len = 4096\n' > "$OUT/$target.options"
done

#!/bin/sh
# TAP: what is installed starts: install.sh SOURCE_ROOT
#
# Installs by the lines of README.md into /usr/local under DESTDIR, into a prefix of its own, which is
# then moved, and with folders that are odd. In each tree the commands find the library from where they
# stand and nothing names the compiler's folder, a small model is split and verified, and the programs
# of docs/manual.md are built through pkg-config and run.
set -u
source=$1
skip() {
  echo "1..0 # SKIP $1"
  exit 0
}
for each in meson ninja clang pkg-config readelf python3; do
  command -v $each >/dev/null || skip "there is no $each"
done
tmp=$(realpath "$(mktemp -d)")
trap 'rm -rf "$tmp"' EXIT
# Only what the installed files say may count.
unset DESTDIR LD_LIBRARY_PATH LDFLAGS PKG_CONFIG_SYSROOT_DIR
n=0
report() { # STATUS NAME
  n=$((n + 1))
  if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else
    echo "not ok $n - $2"
    tail -20 "$tmp/log" | sed 's/^/# /'
  fi
}

runpath() { # FILE: its search paths, one a line
  readelf -d "$1" | sed -n 's/.*(R\(UN\)\{0,1\}PATH).*\[\(.*\)\]$/\2/p'
}

# tree NAME PREFIX BIN LIB
tree() {
  name=$1 prefix=$2 bin=$3 lib=$4
  # shellcheck disable=SC2016  # the loader's variable
  wanted='$ORIGIN/'$(realpath --relative-to="$bin" "$lib")
  runpath "$lib/libpsplit.so" >"$tmp/log"
  [ ! -s "$tmp/log" ] || [ -n "$foreign" ]
  report $? "$name: the library names no folder${foreign:+ # SKIP no other libomp}"
  for tool in inspect merge plan split verify run train; do
    tool=$bin/onnx-pipeline-$tool
    case $tool in *-run | *-train) [ -e "$tool" ] || continue ;; esac # an option of the build
    runpath "$tool" >"$tmp/log"
    [ "$(cat "$tmp/log")" = "$wanted" ]
    report $? "$name: ${tool##*/} looks in $wanted alone"
    "$tool" --version >"$tmp/log" 2>&1
    report $? "$name: ${tool##*/} starts"
  done

  rm -rf "$tmp/work"
  mkdir "$tmp/work"
  cd "$tmp/work" || exit 1
  cp "$tmp/model.onnx" .
  { "$bin/onnx-pipeline-split" model.onnx -k 2 -o two &&
    "$bin/onnx-pipeline-verify" two --model model.onnx; } >"$tmp/log" 2>&1
  report $? "$name: a model is split and verified"

  pc() { PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --define-variable=prefix="$prefix" "$@" psplit; }
  # shellcheck disable=SC2046  # one word per flag
  { clang -std=c11 -Wall -Wextra -Wconversion -Wshadow -Werror "$tmp/split4.c" -o split4 \
      $(pc --cflags --libs) -Wl,-rpath,"$(pc --variable=libdir)" && ./split4 &&
    "$bin/onnx-pipeline-verify" out --model model.onnx; } >"$tmp/log" 2>&1
  report $? "$name: the program of docs/manual.md is built and runs"

  [ -e "$lib/pkgconfig/psplit-run.pc" ] || return 0 # an option of the build
  pc() { PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --define-variable=prefix="$prefix" "$@" psplit-run; }
  # It runs where ONNX Runtime is; that it is built, finds its libraries and a pipeline is asked here.
  # shellcheck disable=SC2046  # one word per flag
  { clang -std=c11 -Wall -Wextra -Wconversion -Wshadow -Werror "$source/samples/run_pipeline.c" -o run_pipeline \
      $(pc --cflags --libs) -Wl,-rpath,"$(pc --variable=libdir)" &&
    PSPLIT_ONNXRUNTIME=/no-such.so ./run_pipeline out 1 1; } >"$tmp/log" 2>&1
  [ $? = 1 ] && grep -q '^error: .*/no-such\.so' "$tmp/log"
  report $? "$name: a program that runs pipelines is built and starts"
}

# block FILE LANGUAGE PATTERN: the first block of that language that holds the pattern
block() {
  awk -v start="^[\`][\`][\`]$2\$" -v pattern="$3" '
    /^```$/ && on { if (text ~ pattern) { printf "%s", text; exit } on = 0; next }
    $0 ~ start { on = 1; text = ""; next }
    on { text = text $0 "\n" }' "$1"
}
block "$source/README.md" sh 'meson install' >"$tmp/lines.sh"
block "$source/docs/manual.md" c 'psplit_model_open' >"$tmp/split4.c"
(cd "$source/tests/cli" &&
  python3 -B -c 'import bad_input, sys; bad_input.write(sys.argv[1], "model.onnx", bad_input.chain(6))' \
    "$tmp") || exit 1

# The lines of README.md make build/ where they stand, which is not to be the caller's source tree.
mkdir "$tmp/source"
for each in "$source"/*; do
  [ -d "$each/meson-private" ] || ln -s "$each" "$tmp/source/"
done
cd "$tmp/source" || exit 1
# -O0 -g0: that it starts is asked, not how fast it is. Without tests, as README.md says below the lines: none
# of them is installed.
# shellcheck disable=SC2016  # the page's backquotes
grep -q '`-Dtests=false`' "$source/README.md" && sed -i 's/meson setup build/& -Dtests=false/' "$tmp/lines.sh" &&
  CFLAGS='-O0 -g0' DESTDIR=$tmp/root sh -e "$tmp/lines.sh" >"$tmp/log" 2>&1 && [ ! -e build/tests ]
report $? "the lines of README.md build and install it"
foreign=$(grep "libomp from the compiler's folder" "$tmp/log") # the loader finds no other
pc=$(find "$tmp/root" -name psplit.pc)
lib=$(dirname "$(dirname "$pc")")
case $lib in "$tmp/root/usr/local/lib"*) true ;; *) false ;; esac
report $? "without --prefix it goes to /usr/local"
tree 'DESTDIR' "$tmp/root/usr/local" "$tmp/root/usr/local/bin" "$lib"

# install TITLE OPTION...
install() {
  title=$1
  shift
  { meson configure "$tmp/source/build" "$@" && meson install -C "$tmp/source/build"; } \
    >"$tmp/log" 2>&1
  report $? "$title: meson install"
}
install prefix --prefix="$tmp/own"
lib=$tmp/own/${lib#"$tmp/root/usr/local/"}
tree prefix "$tmp/own" "$tmp/own/bin" "$lib"
mv "$tmp/own" "$tmp/moved"
tree moved "$tmp/moved" "$tmp/moved/bin" "$tmp/moved/${lib#"$tmp/own/"}"
install folders --prefix="$tmp/odd" --bindir=libexec/psplit --libdir="$tmp/beside/lib64"
tree folders "$tmp/odd" "$tmp/odd/libexec/psplit" "$tmp/beside/lib64"

# Both kinds of library, and a program that has the whole of it in itself.
install both -Ddefault_library=both --prefix="$tmp/both" --bindir=bin --libdir=lib
lib=$tmp/both/lib
for compiler in clang gcc; do
  command -v $compiler >/dev/null || continue
  # shellcheck disable=SC2046  # one word per flag
  { libs=$(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --static --libs psplit) &&
    $compiler -std=c11 $(PKG_CONFIG_PATH=$lib/pkgconfig pkg-config --cflags psplit) \
      "$source/samples/embed.c" -o "$tmp/embed" \
      $(echo "$libs" | sed 's/-lpsplit/-l:libpsplit.a/') &&
    ! readelf -d "$tmp/embed" | grep -q libpsplit &&
    rm -rf "$tmp/stages" && "$tmp/embed" "$tmp/model.onnx" 2 "$tmp/stages" &&
    "$tmp/both/bin/onnx-pipeline-verify" "$tmp/stages" --model "$tmp/model.onnx"; } \
    >"$tmp/log" 2>&1
  report $? "static: samples/embed.c is built with $compiler, has no libpsplit.so, and runs"
done
# The archives alone, by CMake: each names what it needs besides. Then a part that is not there.
if command -v cmake >/dev/null && [ -e "$lib/libpsplit-run.a" ]; then
  mkdir "$tmp/static"
  cd "$tmp/static" || exit 1
  cat >CMakeLists.txt <<'EOF'
cmake_minimum_required(VERSION 3.20)
project(p LANGUAGES C)
find_package(psplit REQUIRED COMPONENTS run OPTIONAL_COMPONENTS run_mpi)
add_executable(run ${SOURCE})
target_link_libraries(run PRIVATE psplit::run)
if(psplit_run_mpi_FOUND)
  add_executable(over_mpi over_mpi.c)
  target_link_libraries(over_mpi PRIVATE psplit::run_mpi)
endif()
EOF
  printf '%s\n' '#include <psplit/run_mpi.h>' 'int main(void) { psplit_mpi_abort(3); }' >over_mpi.c
  rm "$lib"/libpsplit*.so*
  { cmake -S . -B out -DCMAKE_PREFIX_PATH="$tmp/both" -DSOURCE="$source/samples/run_pipeline.c" && cmake --build out &&
    ! readelf -d out/run | grep -q libpsplit && { [ ! -e "$lib/libpsplit-run-mpi.a" ] || [ -e out/over_mpi ]; }; } \
    >"$tmp/log" 2>&1
  report $? "static: CMake links programs that run pipelines"
  rm "$lib/libpsplit-run.a"
  cmake -S . -B none -DCMAKE_PREFIX_PATH="$tmp/both" >"$tmp/log" 2>&1
  [ $? != 0 ] && grep -q 'there is no psplit::run in' "$tmp/log"
  report $? "CMake: a part that was not built is told"
fi
echo "1..$n"

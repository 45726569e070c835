#!/bin/sh
# TAP: other people's builds: build_systems.sh SOURCE BUILD
#
# An installed tree, used by CMake (samples/cmake, with Ninja and with make) and by the lines for make,
# Meson and Bazel of docs/build.md: stages are made, made again when the model or the devices change, and
# left alone otherwise. Bazel itself is not run: its command is, as a genrule runs it. And the project as
# a subproject of Meson.
set -u
source=$1 build=$2
for each in meson ninja make python3; do
  command -v $each >/dev/null || {
    echo "1..0 # SKIP there is no $each"
    exit 0
  }
done
tmp=$(realpath "$(mktemp -d)")
trap 'rm -rf "$tmp"' EXIT
unset LD_LIBRARY_PATH DESTDIR LDFLAGS CFLAGS MAKEFLAGS
n=0
report() { # STATUS NAME
  n=$((n + 1))
  if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else
    echo "not ok $n - $2"
    tail -20 "$tmp/log" | sed 's/^/# /'
  fi
}
block() { # LANGUAGE PATTERN: the first block of docs/build.md in that language that holds the pattern
  awk -v start="^[\`][\`][\`]$1\$" -v pattern="$2" '
    /^```$/ && on { if (text ~ pattern) { printf "%s", text; exit } on = 0; next }
    $0 ~ start { on = 1; text = ""; next }
    on { text = text $0 "\n" }' "$source/docs/build.md"
}
model() { # LENGTH DIRECTORY: a chain of so many nodes as DIRECTORY/model.onnx
  (cd "$source/tests/cli" &&
    python3 -B -c 'import bad_input, sys
bad_input.write(sys.argv[2], "model.onnx", bad_input.chain(int(sys.argv[1])))' "$1" "$2")
}
devices() { # BYTES...: a devices file, an entry of so much memory each
  python3 -B - "$@" <<'EOF'
import json, sys
print(json.dumps({"devices": [{"name": f"d{i}", "preset": "cpu", "memory_bytes": int(bytes)}
                              for i, bytes in enumerate(sys.argv[1:])]}))
EOF
}
stamp() { stat -c %Y.%i "$1/pipeline.json" 2>>"$tmp/log"; }

# again NAME DIRECTORY COMMAND...: the stages in DIRECTORY after each kind of change
again() {
  name=$1 out=$2
  shift 2
  before=$(stamp "$out")
  "$@" >"$tmp/log" 2>&1 && [ "$(stamp "$out")" = "$before" ]
  report $? "$name: nothing is made again when nothing changed"
  sleep 1.1 # file systems and make count in seconds at worst
  model 8 "$tmp/work"
  "$@" >"$tmp/log" 2>&1 && [ "$(stamp "$out")" != "$before" ] &&
    "$bin/onnx-pipeline-verify" "$out" --model "$tmp/work/model.onnx" >>"$tmp/log" 2>&1
  report $? "$name: a changed model is split again"
  model 6 "$tmp/work"
}

meson install -C "$build" --no-rebuild --destdir "$tmp/root" >"$tmp/log" 2>&1
report $? "installing"
config=$(find "$tmp/root" -name psplitConfig.cmake)
bin=$(dirname "$(find "$tmp/root" -name onnx-pipeline-split -type f -perm -100)")
prefix=$(dirname "$bin")
PATH=$bin:$PATH
export PATH
mkdir "$tmp/work"
model 6 "$tmp/work"
cd "$tmp/work" || exit 1

for generator in Ninja 'Unix Makefiles'; do
  if ! command -v cmake >/dev/null; then
    n=$((n + 1))
    echo "ok $n - CMake with $generator # SKIP there is no cmake"
    continue
  fi
  rm -rf out
  { cmake -S "$source/samples/cmake" -B out -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" \
      -DMODEL="$tmp/work/model.onnx" && cmake --build out &&
    onnx-pipeline-verify out/stages --model model.onnx; } >"$tmp/log" 2>&1
  report $? "CMake with $generator: a program is linked and a model split"
  rm -rf mine
  out/embed model.onnx 2 mine >"$tmp/log" 2>&1
  report $? "CMake with $generator: the program finds the library and runs"
  again "CMake with $generator" out/stages cmake --build out

  devices 1000000000 1000000000 1000000000 >devices.json
  rm -rf out
  { cmake -S "$source/samples/cmake" -B out -G "$generator" -DCMAKE_PREFIX_PATH="$prefix" \
      -DMODEL="$tmp/work/model.onnx" -DDEVICES="$tmp/work/devices.json" && cmake --build out &&
    [ -e out/stages/stage2.onnx ]; } >"$tmp/log" 2>&1
  report $? "CMake with $generator: as many stages as the file has devices"
  sleep 1.1
  devices 1000000000 1000000000 >devices.json
  cmake --build out >"$tmp/log" 2>&1 && [ ! -e out/stages/stage2.onnx ]
  report $? "CMake with $generator: devices that changed count"
done
if command -v cmake >/dev/null; then
  mkdir wrong
  printf 'cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(psplit REQUIRED)\npsplit_split(s MODEL m.onnx)\n' \
    >wrong/CMakeLists.txt
  cmake -S wrong -B wrong/out -DCMAKE_PREFIX_PATH="$prefix" >"$tmp/log" 2>&1
  [ $? != 0 ] && grep -q 'STAGES, or DEVICES, says how many' "$tmp/log"
  report $? "CMake: a split into nobody knows how many stages is told"
  printf 'cmake_minimum_required(VERSION 3.20)\nproject(p LANGUAGES C)\nfind_package(psplit 9 REQUIRED)\n' \
    >wrong/CMakeLists.txt
  rm -rf wrong/out
  cmake -S wrong -B wrong/out -DCMAKE_PREFIX_PATH="$prefix" >"$tmp/log" 2>&1
  [ $? != 0 ] && grep -q 'version: 0' "$tmp/log"
  report $? "CMake: another version is not taken"
fi

mkdir make
block make onnx-pipeline-split | sed 's|: model.onnx|: ../model.onnx|' >make/Makefile
make -C make >"$tmp/log" 2>&1 && [ -e make/out/stage3.onnx ]
report $? "make: the lines of docs/build.md split"
again make make/out make -C make

mkdir meson
{
  echo "project('p', 'c')"
  block meson onnx-pipeline-split | sed "s|'model.onnx'|'../model.onnx'|"
} >meson/meson.build
{ meson setup meson/out meson && ninja -C meson/out; } >"$tmp/log" 2>&1 && [ -e meson/out/stages/stage3.onnx ]
report $? "Meson: the lines of docs/build.md split"
again Meson meson/out/stages ninja -C meson/out
{ ninja -C meson/out && DESTDIR=$tmp/installed meson install -C meson/out --no-rebuild; } >"$tmp/log" 2>&1 &&
  onnx-pipeline-verify "$(dirname "$(find "$tmp/installed" -name pipeline.json)")" --model model.onnx >>"$tmp/log" 2>&1
report $? "Meson: stages are installed"
devices 1000000000 1000000000 1000000000 >devices.json
sed -i "s|'-k', '4'|'--devices', '$tmp/work/devices.json'|" meson/meson.build
ninja -C meson/out >"$tmp/log" 2>&1 && [ -e meson/out/stages/stage2.onnx ] && [ ! -e meson/out/stages/stage3.onnx ]
report $? "Meson: as many stages as the file has devices"
sleep 1.1
devices 1000000000 1000000000 >devices.json
ninja -C meson/out >"$tmp/log" 2>&1 && [ ! -e meson/out/stages/stage2.onnx ]
report $? "Meson: devices that changed count"

# A genrule as Bazel runs it: sources are links into another folder, folders of outputs are made before, old
# outputs removed, and the environment is next to empty.
block python genrule >genrule.py
cat >run_genrule.py <<'EOF'
import os, subprocess, sys
rules = []
exec(open("genrule.py").read(), {"genrule": lambda **rule: rules.append(rule)})
model = sys.argv[1]
for rule in rules:
    os.makedirs("execroot", exist_ok=True)
    os.chdir("execroot")
    for source in os.listdir(os.path.dirname(model)):
        if not os.path.lexists(source):
            os.symlink(os.path.join(os.path.dirname(model), source), source)
    outs = [os.path.join("bin", out) for out in rule["outs"]]
    for out in outs:
        os.makedirs(os.path.dirname(out), exist_ok=True)
        if os.path.exists(out):
            os.unlink(out)
    command = rule["cmd"].replace("$(location model.onnx)", "model.onnx").replace("$(RULEDIR)", "bin")
    assert "$" not in command, command
    subprocess.run(["/bin/bash", "-c", "set -euo pipefail; " + command], check=True,
                   env={"PATH": os.environ["PATH"]})
    made = sorted(os.path.join(at, name) for at, _, names in os.walk("bin") for name in names)
    assert made == sorted(outs), made
EOF
mkdir bazel
model 6 "$tmp/work/bazel"
{ python3 -B run_genrule.py "$tmp/work/bazel/model.onnx" &&
  python3 -B run_genrule.py "$tmp/work/bazel/model.onnx" &&
  onnx-pipeline-verify execroot/bin/stages --model model.onnx; } >"$tmp/log" 2>&1
report $? "Bazel: the genrule's command makes its outputs, and makes them again"

# As a subproject by the wrap of docs/build.md, the command and the library that it builds are taken; that
# they are built is what this build has shown.
mkdir -p wrap/subprojects
ln -s "$source" wrap/subprojects/onnx-pipeline-split
block ini wrap-git >wrap/subprojects/onnx-pipeline-split.wrap
cp "$source/samples/embed.c" "$source/samples/run_pipeline.c" model.onnx wrap/
{
  echo "project('p', 'c')"
  echo "executable('embed', 'embed.c', dependencies: dependency('psplit'))"
  echo "executable('run', 'run_pipeline.c', dependencies: dependency('psplit-run'))"
  block meson onnx-pipeline-split
} >wrap/meson.build
PATH=${PATH#"$bin":} meson setup wrap/out wrap >"$tmp/log" 2>&1 &&
  ninja -C wrap/out -t query stages | grep -q subprojects/onnx-pipeline-split/tools/onnx-pipeline-split &&
  ninja -C wrap/out -t query embed | grep -q subprojects/onnx-pipeline-split/libpsplit.so &&
  ninja -C wrap/out -t query run | grep -q subprojects/onnx-pipeline-split/libpsplit-run.so
report $? "Meson: the wrap gives the command and the libraries"
! ninja -C wrap/out -t targets all 2>>"$tmp/log" | grep -q 'tests/'
report $? "Meson: a subproject builds no tests"
echo "1..$n"

#!/bin/sh
# TAP: every public header compiles alone, as C11 and as C++, and no component includes a header of a component
# that its arrows do not lead to (docs/design.md, Components). Private headers cannot be reached across
# components at all; what is left to check here are the public ones.
# usage: headers.sh SOURCE_ROOT CC
set -u
cd "$1" || exit 1
cc=$2
n=0
report() { # STATUS NAME
  n=$((n + 1))
  if [ "$1" -eq 0 ]; then echo "ok $n - $2"; else echo "not ok $n - $2"; fi
}

for header in include/psplit/*.h; do
  name=${header#include/}
  echo "#include <$name>" |
    $cc -std=c11 -Wall -Wextra -Wconversion -Wshadow -Werror -Iinclude -fsyntax-only -x c -
  report $? "$name as C11"
  if echo | $cc -x c++ -fsyntax-only - 2>/dev/null; then
    echo "#include <$name>" |
      $cc -std=c++11 -Wall -Wextra -Werror -Iinclude -fsyntax-only -x c++ -
    report $? "$name as C++11"
  else
    n=$((n + 1))
    echo "ok $n - $name as C++11 # SKIP $cc has no C++"
  fi
done

# COMPONENT ALLOWED...: public headers a component may include.
arrows() {
  component=$1
  shift
  allowed=$(printf '%s|' "$@")
  bad=$(grep -Hno '#include <psplit/[a-z_]*\.h>' "$component"/*.[ch] | grep -vE "psplit/(${allowed%|})\.h>")
  [ -z "$bad" ] || echo "# $bad"
  [ -z "$bad" ]
  report $? "$component/ includes what its arrows allow"
}
arrows base activity base file random
arrows onnx activity base model devices
arrows onnx/text base model model_text
arrows partition activity base partition proposer
arrows policy base partition policy proposer schedule
arrows passes activity base cost_table model devices partition plan passes plugin plugins snapshot
arrows emit activity base model plan emit
arrows view base snapshot view
arrows gradient base gradient model random
arrows training emit gradient passes training base model
arrows verify activity base gradient model verify
arrows runtime base cost_table run run_gradients run_mpi run_service
arrows tune profile snapshot
arrows generate base run generate generate_mpi run_mpi
echo "1..$n"

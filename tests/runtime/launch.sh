#!/bin/sh
# Starts ranks under a library besides those of LD_PRELOAD: launch.sh LIBRARY MPIRUN [ARGS]
library=$1
shift
LD_PRELOAD=${LD_PRELOAD:+$LD_PRELOAD:}$library exec "$@"

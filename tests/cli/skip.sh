#!/bin/sh
# Stands in for a test that this build cannot run, and says why as TAP: skip.sh REASON
echo "1..0 # SKIP $1"

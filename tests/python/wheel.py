#!/usr/bin/env python3
"""A wheel is made, is the same each time, and what it holds works by itself: wheel.py SOURCE BUILD."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from tap import Tap  # noqa: E402

source, build = sys.argv[1:]
tap = Tap()
ok = tap.ok

with tempfile.TemporaryDirectory() as folder:
    def make(where):
        made = subprocess.run([sys.executable, f"{source}/python/make_wheel.py", build, "-o", f"{folder}/{where}"],
                              capture_output=True, text=True)
        return pathlib.Path(made.stdout.strip()) if made.returncode == 0 else made.stderr
    wheel = make("one")
    ok(isinstance(wheel, pathlib.Path), "a wheel is made", wheel)
    if isinstance(wheel, pathlib.Path):
        other = make("two")
        ok(hashlib.sha256(wheel.read_bytes()).digest() == hashlib.sha256(other.read_bytes()).digest(), "the same bytes each time")
        names = zipfile.ZipFile(wheel).namelist()
        ok(any(name.startswith("psplit/libpsplit.so") for name in names) and any("RECORD" in name for name in names),
           "it holds the library", names)
        listed = {line.split(",")[0] for line in zipfile.ZipFile(wheel).read(
            next(name for name in names if name.endswith("/RECORD"))).decode().splitlines()}
        ok(listed == set(names), "RECORD lists all of it", listed ^ set(names))
        # As pip puts it in place: unpacked. Only what it brings along may be loaded of ours.
        place = pathlib.Path(folder) / "site"
        zipfile.ZipFile(wheel).extractall(place)
        script = ("import psplit, sys; print(psplit.version());"
                  "maps = open('/proc/self/maps').read();"
                  "print(sorted({line.split()[-1] for line in maps.splitlines() if 'psplit' in line or 'jansson' in line or 'protobuf-c' in line}))")
        environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
        ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=place, env=environment)
        ok(ran.returncode == 0, "it is imported", ran.stderr)
        ok(ran.returncode == 0 and build not in ran.stdout and ran.stdout.count(str(place)) >= 4,
           "its libraries are its own", ran.stdout)
sys.exit(tap.end())

"""What gcc's -fanalyzer says of C files: gcc_analyzer.py BUILD FILE...; status 1 where it says something.

Each FILE is compiled as BUILD/compile_commands.json says, by gcc and without a result. One process at a time: some
files take gigabytes."""
import json
import os
import shlex
import subprocess
import sys

# -Wanalyzer-malloc-leak: gcc 12 loses what is stored through a pointer to a pointer, as psplit_i_vec_push does and
# arrays of buffers in structs: LeakSanitizer asks instead (tests/sanitize.sh).
ASKED = ["-O1", "-U_FORTIFY_SOURCE", "-fanalyzer", "-Werror", "-Wno-analyzer-malloc-leak", "-DPSPLIT_I_ANALYSER",
         "-S", "-o", os.devnull]
WITH_VALUE = {"-o", "-MF", "-MQ"}
LEFT_OUT = {"-MD", "-g", "-fcolor-diagnostics"}


def arguments(command):
    words = iter(shlex.split(command))
    kept = []
    for word in words:
        if word in WITH_VALUE:
            next(words)
        elif word not in LEFT_OUT and (kept or word.startswith("-")):  # behind the compiler's name
            kept.append(word)
    return kept


def main(build, files):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = {os.path.relpath(os.path.join(e["directory"], e["file"])): e["command"] for e in json.load(file)}
    status = 0
    for name in files:
        if name not in commands:
            sys.exit(f"{name}: {build} does not compile it")
        status |= subprocess.run(["gcc", *arguments(commands[name]), *ASKED], cwd=build, check=False).returncode != 0
    return int(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))

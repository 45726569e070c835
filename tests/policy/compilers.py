"""The same decisions and the same learned weights, bit for bit, from every compiler that is here, at
every optimisation and on every width of vectors. Results as TAP.

    python3 compilers.py SOURCE_ROOT FILE... [-- FLAG...]

FILEs are compiled together into one program, which prints what depends on all bits.
"""
import os
import shutil
import subprocess
import sys
import tempfile

# Some have options that not every processor runs.
WAYS = [(compiler, level, extra) for compiler in ("gcc", "clang") for level in ("-O0", "-O3")
        for extra in ("", "-mavx2", "-mfma")]


def runs(extra):
    flags = open("/proc/cpuinfo", encoding="utf-8").read() if os.path.exists("/proc/cpuinfo") else ""
    return not extra or " %s " % extra[2:] in flags


def main():
    split = sys.argv.index("--")
    root, files, flags = sys.argv[1], sys.argv[2:split], sys.argv[split + 1:]
    said = {}
    with tempfile.TemporaryDirectory() as folder:
        for compiler, level, extra in WAYS:
            if not shutil.which(compiler) or not runs(extra):
                continue
            name = " ".join(filter(None, (compiler, level, extra)))
            program = os.path.join(folder, "digest")
            command = [compiler, "-std=c11", "-D_GNU_SOURCE", level] + ([extra] if extra else [])
            command += flags + ["-I" + os.path.join(root, d) for d in
                                ("include", "base", "policy", "tests/policy")]
            subprocess.run(command + files + ["-o", program, "-lm"], check=True)
            said[name] = subprocess.run([program], check=True, capture_output=True,
                                        text=True).stdout
    if len(said) < 2:
        print("1..0 # SKIP one compiler, one way")
        return
    first = next(iter(said))
    print("1..%d" % (len(said) - 1))
    for n, (name, text) in enumerate(list(said.items())[1:], 1):
        print("%sok %d - %s as %s" % ("" if text == said[first] else "not ", n, name, first))
        if text != said[first]:
            print("# %s# %s" % (text, said[first]))


main()

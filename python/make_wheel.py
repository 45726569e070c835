#!/usr/bin/env python3
"""Makes a wheel of a build: make_wheel.py BUILD [-o DIRECTORY]

The wheel holds the package, its extension, libpsplit, and those libraries that libpsplit needs and that a
system need not have (protobuf-c, OpenMP), with their licences where Debian keeps them. It is for
machines with this C library or a newer one: its platform is the build's, not "manylinux". Needs Python alone.
"""
import argparse
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sysconfig
import zipfile

BUNDLED = re.compile(r"lib(protobuf-c|omp5?|iomp5)\.so")
README = """psplit cuts an ONNX model into pipeline stages for several devices: `import psplit`.
"""


def needed(library):
    """Name -> path of all that a library loads."""
    listing = subprocess.run(["ldd", library], capture_output=True, text=True, check=True).stdout
    return dict(re.findall(r"^\s*(\S+) => (/\S+)", listing, re.M))


def licence_of(path):
    """Debian's copyright file of the package that owns a library, or None."""
    real = os.path.realpath(path)
    for name in (path, real):
        owner = subprocess.run(["dpkg", "-S", name], capture_output=True, text=True)
        if owner.returncode == 0:
            file = pathlib.Path("/usr/share/doc") / owner.stdout.split(":")[0] / "copyright"
            if file.exists():
                return file
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    root = pathlib.Path(__file__).resolve().parent.parent
    package = options.build / "python" / "psplit"
    extension = package / "_psplit.abi3.so"
    if not extension.exists():
        raise SystemExit(f"error: {extension} is not there: build with -Dpython=enabled")
    version = re.search(r"version: '([^']+)'", (root / "meson.build").read_text())[1]
    libraries = needed(extension)
    files = {f"psplit/{name}": (package / name).read_bytes()
             for name in ("__init__.py", "py.typed", "_psplit.abi3.so")}
    info = f"psplit-{version}.dist-info"
    files[f"{info}/licenses/LICENSE"] = (root / "LICENSE").read_bytes()
    for name, path in sorted(libraries.items()):
        if not (name.startswith("libpsplit") or BUNDLED.match(name)):
            continue
        files[f"psplit/{name}"] = pathlib.Path(path).read_bytes()
        licence = licence_of(path)
        if licence:
            files[f"{info}/licenses/{name}.txt"] = licence.read_bytes()
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    tag = f"cp310-abi3-{platform}"
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: psplit\nRoot-Is-Purelib: false\nTag: {tag}\n").encode()
    files[f"{info}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: psplit\nVersion: {version}\n"
        "Summary: Split ONNX models into pipeline stages\nLicense: Apache-2.0\nRequires-Python: >=3.10\n"
        f"Description-Content-Type: text/markdown\n\n{README}").encode()
    rows = []
    for name, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(content)}")
    files[f"{info}/RECORD"] = ("\n".join(rows + [f"{info}/RECORD,,"]) + "\n").encode()
    options.output.mkdir(parents=True, exist_ok=True)
    target = options.output / f"psplit-{version}-{tag}.whl"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0))  # the same bytes each time
            entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
    print(target)


if __name__ == "__main__":
    main()

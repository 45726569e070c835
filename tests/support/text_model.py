"""ONNX files from text (docs/text-form.md), by make_model, which the build makes."""
import os
import subprocess

_ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MAKE_MODEL = os.environ.get("PSPLIT_MAKE_MODEL",
                            os.path.join(_ROOT, "build-test", "tests", "support", "make_model"))


def make(text):
    """The bytes of the file that `text` says; a text without a header gets that of make_model."""
    run = subprocess.run([MAKE_MODEL, "-"], input=text.encode("utf-8", "surrogateescape"),
                         capture_output=True, check=False)
    if run.returncode:
        raise ValueError(run.stderr.decode(errors="replace") + text[:2000])
    return run.stdout


def quoted(text):
    """A string in the text form."""
    return '"%s"' % text.replace("\\", "\\\\").replace('"', '\\"')

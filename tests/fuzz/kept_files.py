"""Files that a script makes and the tree keeps: written to a folder, or compared with those that are kept."""
import os
import sys


def write_or_compare(files, kept):
    """files: {name: content}. With a folder in argv they are written there; else TAP says whether those below
    `kept` are the same."""
    for number, (name, content) in enumerate(files.items()):
        if len(sys.argv) > 1:
            path = os.path.join(sys.argv[1], name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)
            continue
        with open(os.path.join(kept, name), "rb") as file:
            same = file.read() == content
        print("%sok %d - %s" % ("" if same else "not ", number + 1, name))
    if len(sys.argv) == 1:
        print("1..%d" % len(files))

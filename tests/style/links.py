#!/usr/bin/env python3
"""Links between pages lead somewhere: links.py SOURCE_ROOT

Of each .md file every link to a file or a section, and of all sources every page that they name by
its path. Results as TAP.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from must_use import line_of, sources  # noqa: E402
from tap import Tap  # noqa: E402

TEXTS = (".md", ".c", ".h", ".def", ".txt", ".py", ".mjs", ".sh", ".1", ".build", ".json")
LINK = re.compile(r"\]\(([^()\s]+)\)")
# Pages of others.
FOREIGN = {"docs/proposals/ONNXMultiDeviceProposal.md"}
NAMED = re.compile(r"(?<![\w./-])docs/[\w/-]+\.md")


def prose(text):
    """Blocks of code as empty lines, so that lines keep their numbers."""
    return re.sub(r"^```.*?^```", lambda match: "\n" * match[0].count("\n"), text, flags=re.M | re.S)


def anchors(text):
    """What a browser calls the sections of a page."""
    found, names = {}, set()
    for title in re.findall(r"^#+ (.*)$", prose(text), re.M):
        title = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
        names.add(name + ("-%d" % found[name] if found[name] else ""))
    return names


def broken(pages, exists):
    """path:line: link, of {path: text}."""
    sections = {path: anchors(text) for path, text in pages.items()}
    for path, text in pages.items():
        for match in LINK.finditer(prose(text)):
            if re.match(r"[a-z]+:", match[1]):
                continue
            to, _, section = match[1].partition("#")
            to = os.path.normpath(os.path.join(os.path.dirname(path), to)) if to else path
            if not exists(to) or (section and section not in sections.get(to, ())):
                yield "%s:%d: %s" % (path, line_of(prose(text), match.start()), match[1])


def main(root):
    tap = Tap()
    sample = {"a.md": "# A b, c\n[x](#a-b-c) [y](#a-b)\n```\n# D\n[z](e.md)\n```\n[u](d/b.md#v)\n",
              "d/b.md": "## `V`\n[w](../a.md#d) [x](c.md) [y](https://z/#a)\n"}
    seen = list(broken(sample, sample.__contains__))
    tap.none("a link to nothing is seen", [] if seen ==
             ["a.md:2: #a-b", "d/b.md:2: ../a.md#d", "d/b.md:2: c.md"] else seen or ["none was"])

    texts = dict(sources(root, TEXTS))
    pages = {path: text for path, text in texts.items() if path.endswith(".md")}
    n = sum(len(LINK.findall(text)) for text in pages.values())
    tap.none("links between pages lead somewhere",
             list(broken(pages, lambda path: os.path.exists(os.path.join(root, path))))
             + ["only %d links were found" % n] * (n < 300))
    named = [(path, line_of(text, match.start()), match[0])
             for path, text in texts.items() for match in NAMED.finditer(text)
             if match[0] not in FOREIGN]
    tap.none("pages that sources name exist",
             ["%s:%d: %s is no page" % each for each in named
              if not os.path.exists(os.path.join(root, each[2]))]
             + ["only %d were found" % len(named)] * (len(named) < 30))
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

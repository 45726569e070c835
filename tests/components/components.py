"""Arrows between components point down, and no two files need each other.

Holds the table of components in docs/design.md against what the build really did: the headers that the
compiler opened (ninja's record of -MD) and the symbols that objects take from each other (nm).

    python3 components.py SOURCE BUILD [--print] [COMPONENT_THAT_IS_NOT_BUILT...]
"""
import collections
import functools
import os
import re
import subprocess
import sys

PUBLIC = "include/psplit"
OUTSIDE = ("tests", "samples")
# What stands on the public API alone.
COMMANDS = "tools"
# Programs may write to standard output and error, libraries hand what they say to a logger.
PROGRAMS = (COMMANDS, "serve", "python")
STANDARD_STREAMS = {"stdout", "stderr", "printf", "vprintf", "puts", "putchar", "perror", "__printf_chk", "__vprintf_chk"}
GENERATED = "onnx.pb-c.h"
MADE_AT_BUILD = ("base/embed.c", "shapes/index_operators.c")


def read_table(path):
    """component -> components that it sees, from rows `| `component/` | sees | does |`, transitively."""
    direct = {}
    for line in open(path, encoding="utf-8"):
        row = re.match(r"\| `([\w/]+)/` \|([^|]*)\|", line)
        if row:
            direct[row[1]] = re.findall(r"`([\w/]+)/`", row[2])
    for component, seen in direct.items():
        for other in seen:
            if other not in direct:
                raise SystemExit(f"{path}: {component} sees {other}, which has no row")
    def closure(component, above):
        if component in above:
            raise SystemExit(f"{path}: {component} sees itself")
        result = {component}
        for other in direct[component]:
            result |= closure(other, above | {component})
        return result
    return {component: closure(component, frozenset()) for component in direct}


def told_to_see_generated(path):
    """Components that the text says include protoc-c's code."""
    text = open(path, encoding="utf-8").read()
    told = re.search(r"Only([^.]*?)include\s+the\s+code\s+that\s+protoc-c\s+generates", text)
    return set(re.findall(r"`([\w/]+)/`", told[1])) if told else set()


def declared(folder):
    """Functions of the public headers."""
    result = set()
    for name in os.listdir(folder):
        text = open(os.path.join(folder, name), encoding="utf-8").read()
        for declaration in re.findall(r"PSPLIT_API[^;]*;", text):
            result.update(re.findall(r"\b(psplit_\w+)\(", declaration)[:1])
    return result


def component_of(path, components):
    """The innermost component that holds a file, or None."""
    folder = os.path.dirname(path)
    while folder:
        if folder in components:
            return folder
        folder = os.path.dirname(folder)
    return None


def objects(source, build):
    """(object, source file, headers) of the project's own files, relative to `source`."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], capture_output=True, text=True,
                             check=True).stdout
    @functools.cache
    def relative(path):
        return os.path.relpath(os.path.join(build, path), source)
    for block in listing.split("\n\n"):
        lines = block.strip().split("\n")
        name = lines[0].split(":")[0]
        if not name.endswith(".o") or len(lines) < 2:
            continue
        files = [relative(line.strip()) for line in lines[1:]]
        main = [f for f in files if f.endswith(".c")]
        if not main or main[0].startswith(("..",) + OUTSIDE):
            continue
        if os.path.relpath(build, source) + os.sep in main[0]:
            continue  # generated
        yield name, main[0], [f for f in files if f.endswith((".h", ".def"))]


def symbols(build, names):
    """object -> (defined, needed)"""
    result = {name: (set(), set()) for name in names}
    # One nm for all: a process for each took most of the test's time.
    listing = subprocess.run(["nm", "-P", "-A", *result], capture_output=True, cwd=build, text=True, check=True).stdout
    for line in listing.splitlines():
        name, rest = line.split(": ", 1)
        symbol, kind = rest.split()[:2]
        if kind in "TDBRVWC":
            result[name][0].add(symbol)
        elif kind == "U":
            result[name][1].add(symbol)
    return result


def circles(edges):
    """Strongly connected components of more than one file (Tarjan 1972)."""
    index, low, stack, found = {}, {}, [], []
    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        for w in sorted(edges[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in stack:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            component = []
            while not component or component[-1] != v:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(sorted(component))
    sys.setrecursionlimit(10000)
    for v in sorted(edges):
        if v not in index:
            visit(v)
    return found


def main():
    source, build = os.path.realpath(sys.argv[1]), os.path.realpath(sys.argv[2])
    components = read_table(os.path.join(source, "docs/design.md"))
    of_object = {name: (file, headers) for name, file, headers in objects(source, build)}
    of_symbol = {}
    tables = symbols(build, of_object)
    for name, (defined, _) in tables.items():
        for symbol in defined:
            of_symbol.setdefault(symbol, of_object[name][0])

    public = declared(os.path.join(source, PUBLIC))
    homeless, includes, links, private, loud = set(), [], [], [], []
    opens_generated = set()
    edges, arrows = collections.defaultdict(set), collections.Counter()
    for name, (file, headers) in of_object.items():
        component = component_of(file, components)
        if component is None:
            homeless.add(file)
            continue
        edges[file]
        if component not in PROGRAMS and file not in MADE_AT_BUILD:
            loud += [f"{file} takes {symbol}" for symbol in sorted(tables[name][1] & STANDARD_STREAMS)]
        if any(os.path.basename(header) == GENERATED for header in headers):
            opens_generated.add(component)
        for header in headers:
            if header.startswith("..") or header.startswith(PUBLIC) or os.path.isabs(header):
                continue
            other = component_of(header, components)
            if other and other not in components[component]:
                includes.append(f"{file} opens {header}")
            if component == COMMANDS and other != component:
                private.append(f"{file} opens {header}, which is not public")
        for symbol in sorted(tables[name][1]):
            target = of_symbol.get(symbol)
            if target is None or target == file:
                continue
            edges[file].add(target)
            other = component_of(target, components)
            arrows[component, other] += 1
            if other not in components[component]:
                links.append(f"{file} takes {symbol} from {target}")
            if component == COMMANDS and other != component and symbol not in public:
                private.append(f"{file} takes {symbol}, which is private to {target}")

    if "--print" in sys.argv:
        for (a, b), n in sorted(arrows.items()):
            if a != b:
                print(f"# {a} -> {b}: {n}")
    checks = [("every file is in a component of the table", sorted(homeless)),
              ("no header of a component above is opened", includes),
              ("no symbol of a component above is taken", links),
              ("commands use public headers and symbols alone", private),
              ("no library writes to standard output or error", loud),
              ("the components that see generated code are those of which it is said",
               sorted(opens_generated ^ told_to_see_generated(os.path.join(source, "docs/design.md")))),
              ("no files need each other", [" <-> ".join(c) for c in circles(edges)]),
              ("every component of the table has files", sorted(set(components) - {component_of(f, components) for f, _ in of_object.values()}
                                                          - {""} - set(sys.argv[3:])))]
    print(f"1..{len(checks)}")
    for i, (what, wrong) in enumerate(checks, 1):
        print(f"{'not ok' if wrong else 'ok'} {i} - {what} ({len(of_object)} files)")
        for line in wrong:
            print(f"# {line}")
    return 1 if any(wrong for _, wrong in checks) else 0


sys.exit(main())

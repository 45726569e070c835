#!/usr/bin/env python3
"""What shells complete: completion.py TOOL...

Each command's --completion for bash, zsh and fish names every option of --help; the words that it
offers for an argument are those that the command takes, and no others. bash and zsh are driven in a
terminal of their own, fish asked for what it would offer; a shell that is not installed is skipped. TAP.
"""
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

from bad_input import Tap

SHELLS = ("bash", "zsh", "fish")
CHECKS = {"bash": ("bash", "-n"), "zsh": ("zsh", "-f", "-n"), "fish": ("fish", "--no-execute")}


def script(tool, shell):
    done = subprocess.run([tool, "--completion", shell], capture_output=True, text=True, timeout=60)
    return done.stdout if done.returncode == 0 and not done.stderr else ""


def options(tool):
    """{--name: argument or ""} of --help."""
    text = subprocess.run([tool, "--help"], capture_output=True, text=True, timeout=60).stdout
    return dict(re.findall(r"^  (?:-\w, |    )(--[\w-]+) ?(\S*)", text, re.M))


def completed(text, shell):
    """The options that a script completes."""
    if shell == "bash":
        return re.search(r"compgen -W '(--[^']*)'", text)[1].split()
    if shell == "zsh":
        return re.findall(r"(--[\w-]+)=?\[", text)
    return ["--" + name for name in re.findall(r" -l ([\w-]+)", text)]


def offered(text):
    """{--name: words} of bash."""
    found = re.findall(r"^ +(?:-\w \| )?(--[\w-]+)\) (?:compopt [^;]*; )?mapfile [^']*'([^']*)'", text, re.M)
    return {name: words.split() for name, words in found}


class Terminal:
    """An interactive bash with the completions loaded, in which M-* puts in all there are."""

    def __init__(self, directory, files):
        self.child, self.terminal = pty.fork()
        if not self.child:
            os.chdir(directory)
            os.environ.update(PS1="@", TERM="dumb", HISTFILE="/dev/null")
            os.environ.pop("PROMPT_COMMAND", None)
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
        for file in files:
            self.send("source %s\n" % shlex.quote(file))
        self.send("bind 'set enable-bracketed-paste off'\n")
        self.send("stty cols 5000\n")

    def send(self, text):
        os.write(self.terminal, text.encode())

    def offers(self, line, mark):
        """What `line` becomes."""
        # C-a and "echo" before it: the line is said, not run.
        self.send(line + "\x1b*" + "\x01echo mark%d= \x05 =end\n" % mark)
        read, deadline = "", time.monotonic() + 60
        pattern = re.compile(r"^mark%d= (.*) =end" % mark, re.M)
        while not pattern.search(read) and time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 0.2)[0]:
                read += os.read(self.terminal, 65536).decode(errors="replace").replace("\r", "")
        found = pattern.search(read)
        return found[1] if found else "nothing in: " + read

    def close(self):
        self.send("\x03\nexit\n")
        os.close(self.terminal)
        os.waitpid(self.child, 0)


def drive_bash(tap, directory, files):
    """[line, what M-* makes of it]; the directory has sub/, model.onnx and "two words.json"."""
    terminal = Terminal(directory, files)
    split = "onnx-pipeline-split "
    cases = (
        (split + "--bou", split + "--boundary"),
        (split + "--boundary ", split + "--boundary io sendrecv"),
        (split + "--boundary=i", split + "--boundary=io"),
        (split + "mod", split + "model.onnx"),
        (split + "model.onnx -o ", split + "model.onnx -o sub"),
        (split + "--costs tw", split + r"--costs two words.json"),
        (split + "-k ", split + "-k"),
        (split + "--devices nvidia-rtx", split + "--devices nvidia-rtx-3090 nvidia-rtx-4090"),
        ("onnx-pipeline-verify --mod", "onnx-pipeline-verify --model"),
        ("onnx-pipeline-inspect --before infer", "onnx-pipeline-inspect --before infer-shapes"))
    for mark, (line, wanted) in enumerate(cases):
        got = terminal.offers(line, mark)
        tap.ok(got.split() == wanted.replace("sub", "sub/").split() or got.split() == wanted.split(),
               "bash: " + line.replace("#", ""), got)
    terminal.close()


ZSH = """fpath=(%s $fpath)
autoload -Uz compinit; compinit -D -u
zle -C all-matches complete-word _generic
zstyle ':completion:all-matches:*' old-matches only
zstyle ':completion:all-matches::::' completer _all_matches
tell() { print -r -- "$BUFFER" >>$TOLD; BUFFER= }
zle -N tell
bindkey '^Xa' all-matches '^Xt' tell
"""


class Zsh:
    """An interactive zsh that finds the scripts by their commands' names, in which Tab and ^Xa put in all there
    are, and ^Xt tells the line."""

    def __init__(self, directory, scripts):
        self.told = os.path.join(scripts, "told")
        open(self.told, "w").close()
        self.child, self.terminal = pty.fork()
        if not self.child:
            os.chdir(directory)
            os.environ.update(PS1="@", TERM="dumb", HISTFILE="/dev/null", TOLD=self.told)
            os.execvp("zsh", ["zsh", "-f", "-i"])
        os.write(self.terminal, (ZSH % shlex.quote(scripts)).encode())

    def offers(self, line):
        os.write(self.terminal, (line + "\t\x18a\x18t").encode())
        told, deadline = "", time.monotonic() + 60
        while not told.endswith("\n") and time.monotonic() < deadline:
            while select.select([self.terminal], [], [], 0.05)[0]:
                os.read(self.terminal, 65536)
            with open(self.told, "r+", encoding="utf-8") as file:
                told = file.read()
        open(self.told, "w").close()
        return told

    def close(self):
        os.write(self.terminal, b"\x03\nexit\n")
        os.close(self.terminal)
        os.waitpid(self.child, 0)


def drive_zsh(tap, directory, scripts):
    terminal = Zsh(directory, scripts)
    split = "onnx-pipeline-split "
    for line, wanted in (
            (split + "--bou", split + "--boundary="), (split + "--boundary ", split + "--boundary io sendrecv"),
            (split + "--boundary=i", split + "--boundary=io"), (split + "mod", split + "model.onnx"),
            (split + "model.onnx -o ", split + "model.onnx -o sub/"), (split + "-k ", split + "-k"),
            (split + "--costs tw", split + r"--costs two\ words.json"), (split + "--no-s", split + "--no-state --no-sync"),
            (split + "--devices apple-m1", split + "--devices apple-m1"), (split + "--devices=intel", split + "--devices=intel-npu-meteor-lake"),
            (split + "--devices mod", split + "--devices model.onnx"),
            ("onnx-pipeline-verify --mod", "onnx-pipeline-verify --model=")):
        got = terminal.offers(line)
        tap.ok(got.strip() == wanted, "zsh: " + line, got)
    terminal.close()


def drive_fish(tap, directory, file):
    for line, wanted in (("--bou", ["--boundary"]), ("--boundary ", ["io", "sendrecv"]),
                         ("--costs two", ["two words.json"]), ("-o ", ["sub/"]), ("-k ", [])):
        done = subprocess.run(
            ["fish", "--no-config", "-c", 'source %s; complete -C "onnx-pipeline-split %s"' % (file, line)],
            cwd=directory, capture_output=True, text=True, timeout=60)
        got = [row.split("\t")[0].replace("\\ ", " ") for row in done.stdout.splitlines()]
        tap.ok(got == wanted, "fish: onnx-pipeline-split " + line, done.stdout + done.stderr)


def main(argv):
    tools = {os.path.basename(path): os.path.abspath(path) for path in argv[1:]}
    tap, scripts = Tap(), ""
    directory = os.path.realpath(tempfile.mkdtemp(prefix="psplit-completion-"))
    try:
        os.mkdir(os.path.join(directory, "sub"))
        for name in ("model.onnx", "two words.json"):
            open(os.path.join(directory, name), "w").close()
        scripts = tempfile.mkdtemp(prefix="psplit-completion-")
        for name, tool in tools.items():
            known = options(tool)
            for shell in SHELLS:
                text = script(tool, shell)
                path = os.path.join(scripts, "%s.%s" % (name, shell))
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                tap.ok(text and set(completed(text, shell)) == set(known), "%s: options in %s" % (name, shell),
                       str(set(completed(text, shell)) ^ set(known)) if text else "")
                if shutil.which(shell):
                    done = subprocess.run([*CHECKS[shell], path], capture_output=True, text=True, timeout=60)
                    tap.ok(done.returncode == 0 and not done.stderr, "%s: syntax of %s" % (name, shell),
                           done.stderr)
                else:
                    tap.ok(True, "%s: syntax of %s # SKIP there is no %s" % (name, shell, shell))
            for option, words in offered(script(tool, "bash")).items():
                if not re.fullmatch(r"[^A-Z]*", known[option]):
                    continue  # numbers and names too: it is not a list of all that is taken
                done = subprocess.run([tool, option + "=no-such"], capture_output=True, text=True, timeout=60)
                taken = re.search(r"takes one of (.*), not", done.stderr)
                tap.ok(done.returncode == 2 and taken and taken[1].split(", ") == words,
                       "%s: words of %s" % (name, option), done.stderr + " ".join(words))
        done = subprocess.run([tools["onnx-pipeline-split"], "--completion", "csh"], capture_output=True, text=True)
        tap.ok(done.returncode == 2 and "bash, zsh, fish" in done.stderr, "a shell that is none", done.stderr)
        if shutil.which("bash"):
            drive_bash(tap, directory, [os.path.join(scripts, name + ".bash") for name in tools])
        if shutil.which("zsh"):
            for name in tools:
                os.symlink(name + ".zsh", os.path.join(scripts, "_" + name))
            drive_zsh(tap, directory, scripts)
        if shutil.which("fish"):
            drive_fish(tap, directory, os.path.join(scripts, "onnx-pipeline-split.fish"))
    finally:
        shutil.rmtree(directory, ignore_errors=True)
        shutil.rmtree(scripts, ignore_errors=True)
    return tap.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv))

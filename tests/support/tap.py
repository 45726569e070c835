"""Results as TAP, and a directory for a test that goes with all that is in it."""
import contextlib
import os
import shutil
import tempfile

MOST_LINES = 20


def small_files():
    """For many small files: a directory in memory, or None where a machine has none to spare. A disk is waited for at
    the end of each."""
    try:
        room = os.statvfs("/dev/shm")
    except OSError:
        return None
    enough = room.f_bsize * room.f_bavail >= 1 << 29 and os.access("/dev/shm", os.W_OK)
    return "/dev/shm" if enough else None


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def ok(self, good, name, why=""):
        """A result, and why it is not good; returns whether it is."""
        self.count += 1
        self.failed += not good
        name = str(name).replace("#", "\\#")
        print("%s %d - %s" % ("ok" if good else "not ok", self.count, name), flush=True)
        for line in str(why).strip().splitlines()[:MOST_LINES] if not good else []:
            print("# " + line, flush=True)
        return bool(good)

    def none(self, name, bad):
        """That a list is empty; all of it is shown if it is not."""
        for line in bad:
            print("# " + line)
        return self.ok(not bad, name)

    def skip(self, name, why):
        self.count += 1
        print("ok %d - %s # SKIP %s" % (self.count, name, why), flush=True)

    def end(self):
        """The plan, behind all results; the exit status."""
        print("1..%d" % self.count, flush=True)
        return 1 if self.failed else 0


@contextlib.contextmanager
def scratch(name):
    """Runs what is in it in a new directory."""
    home = os.getcwd()
    directory = tempfile.mkdtemp(prefix="psplit-%s-" % name)
    try:
        os.chdir(directory)
        yield directory
    finally:
        os.chdir(home)
        shutil.rmtree(directory, ignore_errors=True)

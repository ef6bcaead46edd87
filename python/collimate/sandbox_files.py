"""The files that a sandboxed process sees: a root of its own, into which directories of ours are mounted, read-only."""

import contextlib
import os
import site
import sys

from sandbox_calls import (BIND, NODEV, NOEXEC, NOSUID, READ_ONLY, RECURSIVE, SLAVE, mount, pivot_root, set_mount,
                           unmount)

# Many programs have files here: a file's being in one of these tells nothing about what lies beside it.
SHARED = {"/", "/tmp", "/var/tmp", "/dev", "/dev/shm", "/home", "/etc", "/var", "/run", "/proc", "/sys", "/mnt", "/srv"}
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64")
# Nothing of /etc that somebody has keys or words in.
SETTINGS = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "timezone", "mime.types",
            "services", "protocols", "ssl/certs", "ssl/openssl.cnf", "pki/tls/certs", "pki/ca-trust/extracted", "fonts")
NETWORK_SETTINGS = ("resolv.conf", "hosts", "nsswitch.conf", "gai.conf")
DEVICES = ("null", "zero", "full", "random", "urandom")
USER = 1000
SCRATCH = "/tmp"


class View:
    """Paths outside and how they are seen inside: each by its own name, with the links on the way to it."""

    def __init__(self):
        self.links = {}   # a link and where it leads
        self.mounts = {}  # a file or directory, and whether entries of it that begin with a dot are hidden

    def add(self, path, hiding=False):
        """Nothing happens where nothing is."""
        real = self.follow(path)
        if real is not None and real != "/":
            self.mounts[real] = hiding and self.mounts.get(real, True)

    def follow(self, path, links_left=40):
        done, parts = "", [part for part in os.path.abspath(path).split("/") if part]
        while parts:
            done = f"{done}/{parts.pop(0)}"
            if not os.path.lexists(done) or links_left == 0:
                return None
            if os.path.islink(done):
                links_left -= 1
                target = os.readlink(done)
                self.links[done] = target
                whole = os.path.normpath(os.path.join(os.path.dirname(done), target))
                done, parts = "", [part for part in whole.split("/") if part] + parts
        return done or "/"

    def shows(self, path):
        """Whether one of the mounts shows the path already."""
        for above, hiding in self.mounts.items():
            if path.startswith(above + "/") and not (hiding and path[len(above) + 1] == "."):
                return True
        return False


def view_of(request):
    """Everything that the request and Python itself ask for."""
    view = View()
    settings = SETTINGS + (NETWORK_SETTINGS if request["network"] else ())
    for path in (*SYSTEM, *(f"/etc/{name}" for name in settings), "/etc/python3",
                 f"/etc/python{sys.version_info[0]}.{sys.version_info[1]}"):
        view.add(path)
    for path in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix, sys.executable,
                 os.path.dirname(sys.executable), os.path.dirname(os.path.realpath(__file__)),
                 site.getusersitepackages(), *request["readable"]):
        if path not in ("", *SHARED):
            view.add(path)
    for path in (*request["packages"], *sys.path):  # one may be a project, or the directory that we are in
        if path not in ("", *SHARED):
            view.add(path, hiding=os.path.isdir(path))
    for file in request["files"]:
        directory = os.path.dirname(os.path.abspath(file))
        if os.path.realpath(directory) not in SHARED:
            view.add(directory, hiding=True)
        view.add(file)
    if os.path.realpath(request["directory"]) not in SHARED:
        view.add(request["directory"], hiding=True)
    return view


def make_file(path, text=""):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def bind(source, target, flags):
    """`target` is made where it is not yet."""
    if not os.path.lexists(target):
        if os.path.isdir(source):
            os.makedirs(target)
        else:
            make_file(target)
    mount(source, target, flags=BIND | RECURSIVE)
    set_mount(target, flags)


def hide_dots(directory, nothing):
    """Gives the empty directories that stand in for those whose names begin with a dot: they are not sealed yet."""
    made = []
    for entry in os.scandir(directory):
        if not entry.name.startswith(".") or entry.is_symlink():
            continue
        with contextlib.suppress(FileNotFoundError):  # it has gone meanwhile
            if entry.is_dir():
                mount("tmpfs", entry.path, "tmpfs", NOSUID | NODEV, "mode=755,size=1m")
                made.append(entry.path)
            else:
                mount(nothing, entry.path, flags=BIND)
    return made


def make_devices(root, old, scratch_bytes):
    for name in DEVICES:
        bind(f"{old}/dev/{name}", f"{root}/dev/{name}", READ_ONLY | NOSUID | NOEXEC)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0"), ("stdout", "/proc/self/fd/1"),
                         ("stderr", "/proc/self/fd/2")):
        os.symlink(target, f"{root}/dev/{name}")
    for path in ("/dev/shm", SCRATCH):
        os.makedirs(root + path, exist_ok=True)
        mount("tmpfs", root + path, "tmpfs", NOSUID | NODEV, f"mode=1777,size={scratch_bytes},nr_inodes=65536")


def fill(root, old, view, scratch_bytes):
    """Gives the mounts that have to be sealed when everything is in its place."""
    unsealed = []
    make_devices(root, old, scratch_bytes)
    os.makedirs(f"{root}/proc")
    mount("proc", f"{root}/proc", "proc", NOSUID | NODEV | NOEXEC | READ_ONLY)
    for path in sorted(view.mounts):
        if view.shows(path):
            continue
        bind(old + path, root + path, READ_ONLY | NOSUID | NODEV)
        if view.mounts[path]:
            unsealed += hide_dots(root + path, f"{old}/dev/null")
    for link, target in sorted(view.links.items()):
        if not os.path.lexists(root + link):
            os.makedirs(os.path.dirname(root + link), exist_ok=True)
            os.symlink(target, root + link)
    if not os.path.lexists(f"{root}/etc/passwd"):
        make_file(f"{root}/etc/passwd", f"reward:x:{USER}:{USER}::{SCRATCH}:/bin/false\n")
        make_file(f"{root}/etc/group", f"reward:x:{USER}:\n")
    return unsealed


def enter(view, directory, scratch_bytes):
    """Makes the root and moves into it, for good: nothing else of the file system is left."""
    mount(None, "/", flags=SLAVE | RECURSIVE)
    mount("tmpfs", "/tmp", "tmpfs", NOSUID | NODEV, "mode=755")
    os.mkdir("/tmp/old")
    os.mkdir("/tmp/new")
    pivot_root("/tmp", "/tmp/old")
    os.chdir("/")
    mount("tmpfs", "/new", "tmpfs", NOSUID | NODEV, "mode=755,size=16m")
    unsealed = fill("/new", "/old", view, scratch_bytes)
    unmount("/old")
    os.chdir("/new")
    pivot_root(".", ".")
    unmount(".")
    for path in ["/", *(path[len("/new"):] for path in unsealed)]:
        set_mount(path, READ_ONLY, recursive=False)
    os.chdir(directory if os.path.isdir(directory) else SCRATCH)


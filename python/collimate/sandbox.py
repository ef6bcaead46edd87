"""A program in a sandbox: `python -I sandbox.py REQUEST ARGUMENT...` runs `python ARGUMENT...` in its own namespaces.

Three processes. This one stays outside: it makes the namespaces, says to the kernel which users they have, and ends as
the program does. The second is the first process of the sandbox: it builds the file system, gives up every right,
starts the third, which becomes the program, and watches memory and processor time of all. When the second ends, the
kernel kills whatever is left inside; it ends with the program, or when the first one does.

REQUEST is JSON: {"network", "environment": [names], "readable": [paths], "files": [what is read with all beside it],
"directory", "memory", "scratch" (bytes), "processes", "cpu" (seconds)}.
"""

import contextlib
import ctypes
import importlib.util
import json
import os
import platform
import resource
import select
import signal
import site
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))  # behind all others: only our own names are found there
import sandbox_calls as calls
import sandbox_files as files

HIGHEST_USER = 0x7FFFFFFE
FIRST_USER = 0x70000000  # systemd gives users from here on to nobody (its UIDS-GIDS page)
LOOK_SECONDS = 0.05


class Refused(Exception):
    """The kernel, or the program that Collimate itself runs in, does not allow a sandbox."""


def ids_of(name):
    """Ranges (first, count) of the users or groups that there are here: `name` is uid_map or gid_map."""
    with open(f"/proc/self/{name}", encoding="ascii") as file:
        return [tuple(map(int, line.split()))[::2] for line in file]


def own_id(name):
    """A user or group that nobody else is, of those that there are here."""
    wanted, ranges = FIRST_USER + os.getpid() % (HIGHEST_USER - FIRST_USER), ids_of(name)
    if any(first <= wanted < first + count for first, count in ranges):
        return wanted
    first, count = max(ranges, key=lambda r: r[1])
    return first + count - 1


def swapped(name, own):
    """A map in which `own` is called files.USER and the other way round. All others keep their ids, so that the right
    to read what root may holds for their files too."""
    lines = []
    for first, count in ids_of(name):
        end = first + count
        for cut in (*sorted(i for i in {files.USER, own} if first <= i < end), end):
            if cut > first:
                lines.append((first, first, cut - first))
            first = cut + 1
    lines.append((files.USER, own, 1))
    if own != files.USER and any(first <= files.USER < first + count for first, count in ids_of(name)):
        lines.append((own, files.USER, 1))
    return "".join(f"{inside} {outside} {count}\n" for inside, outside, count in lines)


def map_users(pid):
    """As root the sandbox has a user of its own, and root for as long as it is built; else, and where root is the only
    user, it has ours under the name of another."""
    own = {name: own_id(name) if os.geteuid() == 0 else 0 for name in ("uid_map", "gid_map")}
    texts = {"setgroups": "deny", "uid_map": f"{files.USER} {os.geteuid()} 1\n",
             "gid_map": f"{files.USER} {os.getegid()} 1\n"}
    if all(own.values()):
        texts = {name: swapped(name, own[name]) for name in own}
    for name, text in texts.items():
        with open(f"/proc/{pid}/{name}", "w", encoding="ascii") as file:
            file.write(text)


def set_limits(request):
    """For each process; processes and threads are counted together. A limit of 1 byte keeps the kernel from giving a
    dump to a program, which 0 does not (fs/coredump.c)."""
    for kind, limit in ((resource.RLIMIT_DATA, request["memory"]), (resource.RLIMIT_FSIZE, request["scratch"]),
                        (resource.RLIMIT_NPROC, request["processes"] + 2), (resource.RLIMIT_NOFILE, 1024),
                        (resource.RLIMIT_CORE, 1), (resource.RLIMIT_MEMLOCK, 1 << 16),
                        (resource.RLIMIT_MSGQUEUE, 0), (resource.RLIMIT_RTPRIO, 0), (resource.RLIMIT_NICE, 0)):
        hard = resource.getrlimit(kind)[1]  # nobody may raise it
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))


def give_up_rights(request):
    """As root, the right to read what root may is kept: no other file of root's is in sight, and the reward's own may
    be root's alone."""
    root = os.geteuid() == 0
    kept = calls.CAP_DAC_READ_SEARCH if root else -1
    calls.drop_bounding_set(kept)
    if root:
        calls.prctl("keeping capabilities", calls.PR_SET_KEEPCAPS, 1)
        os.setgroups([])
        os.setresgid(files.USER, files.USER, files.USER)
        os.setresuid(files.USER, files.USER, files.USER)
    calls.keep_capabilities(1 << kept if root else 0)
    if root:
        calls.prctl("keeping a capability", calls.PR_CAP_AMBIENT, 2, kept)
    set_limits(request)
    calls.prctl("the memory of the first process", calls.PR_SET_DUMPABLE, 0)
    calls.prctl("the death signal", calls.PR_SET_PDEATHSIG, signal.SIGKILL)
    calls.set_filter(request["network"])


def environment_of(request):
    """Only this, and what is allowed by name."""
    variables = {"PATH": f"{os.path.dirname(sys.executable)}:/usr/local/bin:/usr/bin:/bin", "HOME": files.SCRATCH,
                 "TMPDIR": files.SCRATCH, "LANG": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", **request["variables"]}
    if os.path.isdir(site.getusersitepackages()):
        variables["PYTHONUSERBASE"] = site.getuserbase()
    if not request["network"]:
        variables["HF_HUB_OFFLINE"] = "1"
    variables.update({name: os.environ[name] for name in request["environment"] if name in os.environ})
    return variables


def become(arguments, variables):
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    os.setsid()
    os.closerange(3, 1 << 16)
    os.execve(sys.executable, [sys.executable, *arguments], variables)


def try_to_become(arguments, variables):
    """Ends without returning."""
    try:
        become(arguments, variables)
    except OSError as error:
        os.write(2, f"sandbox: {sys.executable}: {error}\n".encode())
    finally:
        os._exit(127)


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]


def lines_of(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""  # it has ended


def sum_of(text, names):
    """Bytes under these names of a file of /proc."""
    return sum(1024 * int(line.split()[1]) for line in text.splitlines() if line.startswith(names))


def memory_of(pids):
    """Bytes that are theirs: pages that several share count once where the kernel tells, which takes it long."""
    def exact(pid):
        text = lines_of(f"/proc/{pid}/smaps_rollup")
        if not text:
            return sum_of(lines_of(f"/proc/{pid}/status"), ("RssAnon:", "RssShmem:"))
        return sum_of(text, ("Pss_Anon:", "Pss_Shmem:"))

    quick = sum(sum_of(lines_of(f"/proc/{pid}/status"), ("RssAnon:", "RssShmem:")) for pid in pids)
    return quick, lambda: sum(map(exact, pids))


def over_memory(request):
    quick, exact = memory_of(processes())
    if quick <= request["memory"]:
        return ""
    bytes_held = exact()
    if bytes_held <= request["memory"]:
        return ""
    return (f"the processes of the function held {bytes_held / 2**30:.2f} GiB together, more than memory_gib: "
            f"{request['memory'] / 2**30:g}")


def processor_seconds(pid):
    words = lines_of(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return sum(map(int, words[11:13])) / os.sysconf("SC_CLK_TCK") if len(words) > 12 else 0


def end_the_busy(worker, limit):
    """Kills processes that the program has started and that have run for longer. Its own time is the caller's."""
    for pid in processes():
        if pid != worker and processor_seconds(pid) > limit:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def reaped(worker):
    """The worker's status when it has ended; others that have ended are forgotten."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == worker:
            return status
        if pid == 0:
            return None


def watch(worker, lifeline, request):
    """Gives how the worker ended and, where that was our doing, why."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # for which Python has a handler; the kernel keeps the others away
    ready = select.poll()
    ready.register(lifeline, select.POLLIN)
    ready.register(woken, select.POLLIN)
    while (status := reaped(worker)) is None:
        for descriptor, _ in ready.poll(1000 * LOOK_SECONDS):
            if descriptor == lifeline:
                os._exit(0)  # nobody waits for an answer
            os.read(woken, 4096)
        reason = over_memory(request)
        if reason:
            os.kill(worker, signal.SIGKILL)
            return os.waitpid(worker, 0)[1], reason
        end_the_busy(worker, request["cpu"])
    return status, ""


def first_process(request, arguments, go, lifeline, report):
    """Ends without returning."""
    told = {}
    try:
        if not os.read(go, 1):
            os._exit(0)
        variables = environment_of(request)
        view = files.view_of(request)
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write("1000")
        calls.libc.sethostname(b"sandbox", ctypes.c_size_t(7))
        files.enter(view, request["directory"], request["scratch"])
        os.setsid()
        give_up_rights(request)
        worker = os.fork()
        if worker == 0:
            try_to_become(arguments, variables)
        told["started"] = True
        nothing = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        told["status"], told["reason"] = watch(worker, lifeline, request)
    except BaseException as error:
        told["error"] = f"{type(error).__name__}: {error}" if not isinstance(error, OSError) else str(error.strerror)
    os.write(report, json.dumps(told).encode())
    os._exit(0)


def remedy():
    """Says what may help here, by what the kernel says of itself."""
    def setting(name):
        return lines_of(f"/proc/sys/{name}").strip()

    if setting("kernel/unprivileged_userns_clone") == "0":
        return "sysctl kernel.unprivileged_userns_clone=1 as root"
    if setting("user/max_user_namespaces") == "0":
        return "sysctl user.max_user_namespaces=10000 as root"
    if setting("kernel/apparmor_restrict_unprivileged_userns") == "1":
        return "sysctl kernel.apparmor_restrict_unprivileged_userns=0 as root, or a profile of AppArmor for python3"
    if os.path.exists("/.dockerenv") or os.path.exists("/run/.containerenv"):
        return ("starting the container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
                "--security-opt systempaths=unconfined")
    return "a kernel from 5.12 on whose settings allow user namespaces, outside of chroot"


def start(request, arguments):
    """The sandbox's first process, and the descriptor on which it reports."""
    if platform.machine() != "x86_64" or sys.platform != "linux":
        raise Refused("Linux on x86-64", f"{sys.platform} on {platform.machine()}")
    flags = sum(calls.NAMESPACES.values()) | (0 if request["network"] else calls.NETWORK_NAMESPACE)
    (go, let_go), (lifeline, alive), (report, told) = os.pipe(), os.pipe(), os.pipe()
    try:
        pid = calls.clone(flags)
        if pid == 0:
            for descriptor in (let_go, alive, report):
                os.close(descriptor)
            first_process(request, arguments, go, lifeline, told)
        os.close(told)
        map_users(pid)
    except OSError as error:
        raise Refused("a kernel that lets this process make namespaces of its own", error.strerror) from None
    os.write(let_go, b"1")
    return pid, report


def everything(descriptor):
    text = b""
    while part := os.read(descriptor, 4096):
        text += part
    return text


def end_as(status):
    """Ends this process as another one has ended."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.WEXITSTATUS(status))


def refuse(expected, got):
    """Answers the caller's first frame, as the program would have."""
    place = os.path.join(os.path.dirname(os.path.abspath(__file__)), "reward_worker.py")
    spec = importlib.util.spec_from_file_location("reward_worker", place)
    worker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(worker)
    frames = worker.own_frames()
    frames.receive()
    frames.send({"refused": expected, "got": got, "remedy": remedy()})
    os._exit(1)


def main(request, arguments):
    try:
        pid, report = start(request, arguments)
        told = json.loads(everything(report) or b"{}")
        status = os.waitpid(pid, 0)[1]
        if "error" in told and "started" not in told:
            raise Refused("a kernel that lets this process build a sandbox", told["error"])
    except Refused as error:
        refuse(*error.args)
    for why in (told.get("reason"), told.get("error")):
        if why:
            print(f"sandbox: {why}", file=sys.stderr, flush=True)
    end_as(told.get("status", status))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])

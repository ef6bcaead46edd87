"""System calls of Linux that sandbox.py needs and Python's os module lacks, and the filter of those that it denies."""

import ctypes
import os
import struct

# Held by the interpreter during a call: a new process begins with one thread that has the interpreter's lock.
libc = ctypes.PyDLL(None, use_errno=True)

NAMESPACES = {"user": 0x10000000, "mount": 0x00020000, "process": 0x20000000, "ipc": 0x08000000,
              "host name": 0x04000000, "cgroup": 0x02000000}
NETWORK_NAMESPACE = 0x40000000
SIGCHLD = 17
BIND, RECURSIVE, SLAVE, NOSUID, NODEV, NOEXEC, READ_ONLY = 0x1000, 0x4000, 0x80000, 2, 4, 8, 1
DETACH = 2
SYS_CLONE, SYS_PIVOT_ROOT, SYS_MOUNT_SETATTR, SYS_CAPSET, SYS_SECCOMP = 56, 155, 442, 126, 317
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = \
    1, 4, 8, 24, 38, 47
CAP_DAC_READ_SEARCH = 2


def checked(name, result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def syscall(name, number, *arguments):
    words = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in arguments]
    return checked(name, libc.syscall(ctypes.c_long(number), *words))


def clone(flags):
    """fork() into new namespaces."""
    return syscall("clone", SYS_CLONE, flags | SIGCHLD, 0, 0, 0, 0)


def mount(source, target, kind=None, flags=0, data=None):
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    checked(f"mount {target}", libc.mount(*texts, ctypes.c_ulong(flags), None if data is None else data.encode()))


def set_mount(target, flags, recursive=True):
    """Adds flags to a mount and, unless told, to all below it (Linux 5.12)."""
    attributes = struct.pack("<QQQQ", flags, 0, 0, 0)
    syscall(f"mount_setattr {target}", SYS_MOUNT_SETATTR, -100, os.fsencode(target), 0x8000 if recursive else 0,
            attributes, len(attributes))


def pivot_root(new, old):
    syscall("pivot_root", SYS_PIVOT_ROOT, os.fsencode(new), os.fsencode(old))


def unmount(target):
    checked(f"umount {target}", libc.umount2(os.fsencode(target), DETACH))


def prctl(name, option, *arguments):
    words = [ctypes.c_ulong(a) for a in (*arguments, 0, 0, 0, 0)[:4]]
    checked(name, libc.prctl(ctypes.c_int(option), *words))


def keep_capabilities(mask):
    """The process has these, and no program that it starts gets others."""
    header, sets = struct.pack("<Ii", 0x20080522, 0), struct.pack("<IIIIII", mask, mask, mask, 0, 0, 0)
    syscall("capset", SYS_CAPSET, header, sets)


def drop_bounding_set(kept):
    with open("/proc/sys/kernel/cap_last_cap", encoding="ascii") as file:
        last = int(file.read())
    for capability in range(last + 1):
        if capability != kept:
            prctl("the bounding set", PR_CAPBSET_DROP, capability)


# Calls of x86-64 by number, with which a process could reach beyond itself, or hold memory that no limit counts. Their
# error is "not permitted".
DENIED = {
    "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311, "kcmp": 312, "pidfd_getfd": 438,
    "process_madvise": 440, "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
    "unshare": 272, "setns": 308, "sethostname": 170, "setdomainname": 171, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "add_key": 248, "request_key": 249, "keyctl": 250, "bpf": 321, "perf_event_open": 298,
    "userfaultfd": 323, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "init_module": 175,
    "finit_module": 313, "delete_module": 176, "kexec_load": 246, "kexec_file_load": 320, "reboot": 169,
    "swapon": 167, "swapoff": 168, "acct": 163, "quotactl": 179, "quotactl_fd": 443, "syslog": 103, "iopl": 172,
    "ioperm": 173, "settimeofday": 164, "clock_settime": 227, "adjtimex": 159, "clock_adjtime": 305,
    "personality": 135, "modify_ldt": 154, "uselib": 134, "vhangup": 153, "nfsservctl": 180, "lookup_dcookie": 212,
    "fanotify_init": 300, "shmget": 29, "shmat": 30, "shmctl": 31, "msgget": 68, "mq_open": 240, "memfd_secret": 447,
}
# Programs ask for these and have another way where a kernel lacks them. Whether clone3 asks for namespaces no filter
# can see.
LACKING = {"clone3": 435, "memfd_create": 319}
CLONE, SOCKET, IOCTL = 56, 41, 16
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
NEW_NAMESPACES = 0x7E020080
EPERM, ENOSYS, EAFNOSUPPORT = 1, 38, 97
AF_INET, AF_INET6, AF_NETLINK = 2, 10, 16

LOAD, EQUAL, AT_LEAST, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
ALLOW, KILL, ERROR = 0x7FFF0000, 0x80000000, 0x00050000
NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
X86_64, X32 = 0xC000003E, 0x40000000


def filter_program(network):
    """Instructions of classic BPF. Sockets of Unix are denied: a path leads to a server outside, whatever namespaces
    say; socketpair() needs none."""
    program = [(LOAD, 0, 0, ARCHITECTURE), (EQUAL, 1, 0, X86_64), (RETURN, 0, 0, KILL), (LOAD, 0, 0, NUMBER),
               (AT_LEAST, 0, 1, X32), (RETURN, 0, 0, KILL)]
    for numbers, error in ((DENIED, EPERM), (LACKING, ENOSYS)):
        for number in numbers.values():
            program += [(EQUAL, 0, 1, number), (RETURN, 0, 0, ERROR | error)]
    families = [AF_INET, AF_INET6] + ([AF_NETLINK] if network else [])
    program += [(EQUAL, 0, 3, CLONE), (LOAD, 0, 0, FIRST_ARGUMENT), (ANY_BIT, 0, 1, NEW_NAMESPACES),
                (RETURN, 0, 0, ERROR | EPERM), (LOAD, 0, 0, NUMBER)]
    program += [(EQUAL, 0, 5, IOCTL), (LOAD, 0, 0, SECOND_ARGUMENT), (EQUAL, 1, 0, TIOCSTI), (EQUAL, 0, 1, TIOCLINUX),
                (RETURN, 0, 0, ERROR | EPERM), (LOAD, 0, 0, NUMBER)]
    program += [(EQUAL, 0, len(families) + 2, SOCKET), (LOAD, 0, 0, FIRST_ARGUMENT)]
    program += [(EQUAL, len(families) - i, 0, family) for i, family in enumerate(families)]
    program += [(RETURN, 0, 0, ERROR | EAFNOSUPPORT), (RETURN, 0, 0, ALLOW)]
    return program


def set_filter(network):
    """Denies this process and all that it starts the calls above, for good."""
    prctl("no new privileges", PR_SET_NO_NEW_PRIVS, 1)
    program = filter_program(network)
    code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in program))
    head = struct.pack("<HxxxxxxQ", len(program), ctypes.addressof(code))
    syscall("seccomp", SYS_SECCOMP, 1, 0, head)

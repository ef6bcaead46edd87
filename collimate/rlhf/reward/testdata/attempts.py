"""Attempts of a reward function to reach beyond its sandbox, or to hold up who asks it, one for each completion.

An attempt gives what is true when it got where it should not. `at` has secret, root (with elsewhere/secret,
run/metrics.jsonl and reward/.token), pid and victim (of processes outside), port and abstract (of servers outside).
Behind its first line stands how it ends: `held`, or `fails`, with a part of the error; `open` where it gets there when
it is tried without a sandbox, which would harm nothing.
"""

import ctypes
import glob
import json
import mmap
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import threading
import time

libc = ctypes.CDLL(None, use_errno=True)


def call(number, *arguments):
    libc.syscall.restype = ctypes.c_long
    words = [a if isinstance(a, (bytes, ctypes.Array)) else ctypes.c_long(a) for a in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 16)


def tries(actions):
    for action in actions:
        try:
            if action():
                return True
        except OSError:
            pass
    return False


def ReadASecret(at):  # held, open
    return at['secret'].encode() in read(at['root'] + '/elsewhere/secret')


def ReadAHiddenFileBesideTheReward(at):  # held, open
    return read(at['root'] + '/reward/.token')


def ReadThroughALink(at):  # held, open
    os.symlink(at['root'] + '/elsewhere', '/tmp/collimate_link')
    try: return read('/tmp/collimate_link/secret')
    finally: os.unlink('/tmp/collimate_link')


def ReadThroughTheFirstProcessesRoot(at):  # held, open
    return tries(lambda p=p: read(f'/proc/{p}/root' + at['root'] + '/elsewhere/secret')
                 for p in ('self', 1, os.getppid(), at['pid'], at['victim']))


def ReadThroughTheParentOfTheCurrentDirectory(at):  # held, open
    return read('/proc/self/cwd/' + '../' * 20 + at['root'] + '/elsewhere/secret')


def ReadThroughAnOpenDirectory(at):  # held, open
    os.chdir('/')
    directory = os.open('..', os.O_RDONLY)
    os.fchdir(directory)
    return read('../../' + at['root'][1:] + '/elsewhere/secret')


def ReadThroughInheritedDescriptors(at):  # held
    def there(number):
        os.stat(f'/dev/fd/{number}')
        return os.open('../elsewhere/secret', os.O_RDONLY, dir_fd=number)
    return tries([lambda n=n: there(n) for n in range(3, 200)])


def ReadTheShadowFile(at):  # held
    return read('/etc/shadow')


def ReadTheHomeOfRoot(at):  # held
    return glob.glob('/root/.[a-z]*rc') or glob.glob('/root/.ssh')


def ReadAVariable(at):  # held, open
    return at['secret'] in os.environ.values()


def ReadVariablesOfOthers(at):  # held, open
    return tries(lambda p=p: at['secret'].encode() in read(f'/proc/{p}/environ') for p in
                 ('self', 1, os.getppid(), at['pid'], at['victim']))


def ReadTheCommandsOfOthers(at):  # held, open
    return tries(lambda p=p: b'sleep' in read(f'/proc/{p}/cmdline') for p in [at['victim']])


def WriteIntoTheRunsDirectory(at):  # held, open
    with open(at['root'] + '/run/metrics.jsonl', 'r+') as file: file.write('t')
    return True


def WriteBesideTheReward(at):  # held, open
    open(at['root'] + '/reward/new', 'w').close()
    os.unlink(at['root'] + '/reward/new')
    return True


def ChangeTheReward(at):  # held, open
    return open(at['root'] + '/reward/reward.py', 'a')


def ChangeModes(at):  # held, open
    os.chmod(at['root'] + '/reward/reward.py', 0o600)
    return True


def ChangeTimes(at):  # held, open
    os.utime(at['root'] + '/reward/reward.py')
    return True


def RemoveTheReward(at):  # held, open
    path = at['root'] + '/reward/reward.py'
    os.rename(path, path + '2')
    os.rename(path + '2', path)
    return True


def LinkAFileOfTheRun(at):  # held, open
    os.link(at['root'] + '/run/metrics.jsonl', at['root'] + '/reward/link')
    os.unlink(at['root'] + '/reward/link')
    return True


def WriteIntoTheSystem(at):  # held
    return tries(lambda p=p: open(p + '/collimate_x', 'w') for p in
                 ('/', '/etc', '/usr', '/usr/lib', '/lib', '/bin', '/dev', '/root', '/var/tmp', '/proc/sys'))


def ReplaceTheInterpreter(at):  # held
    return tries([lambda: open('/proc/self/exe', 'r+b'), lambda: open(sys.executable, 'r+b')])


def WriteSettingsOfTheKernel(at):  # held, open
    return tries(lambda p=p: open('/proc/' + p, 'r+') for p in
                 ('sys/kernel/core_pattern', 'sys/kernel/hostname', 'sysrq-trigger', 'sys/vm/overcommit_memory',
                  'self/oom_score_adj', 'self/uid_map', '1/oom_score_adj', 'sys/fs/binfmt_misc/register'))


def ReadMemoryAndDisks(at):  # held
    names = ['/dev/mem', '/dev/kmem', '/dev/port', '/proc/kcore', '/dev/sda', '/dev/vda', '/dev/kmsg', '/dev/tty']
    return tries(lambda p=p: open(p, 'rb') for p in names + glob.glob('/dev/[svn][dv][a-z]*'))


def ConnectToTheLoopback(at):  # held, open
    return socket.create_connection(('127.0.0.1', at['port']), 1)


def SendADatagram(at):  # held, open
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s: return s.sendto(b'x', ('127.0.0.1', at['port']))


def ConnectBySixthVersion(at):  # held
    s = socket.socket(socket.AF_INET6)
    s.settimeout(1)
    return s.connect(('::ffff:127.0.0.1', at['port'])) is None


def ConnectToAnAbstractSocket(at):  # held, open
    return socket.socket(socket.AF_UNIX).connect('\0' + at['abstract']) is None


def ConnectToASocketBesideTheReward(at):  # held, open
    return socket.socket(socket.AF_UNIX).connect(at['root'] + '/reward/socket') is None


def SeeOtherInterfaces(at):  # held
    return set(n for _, n in socket.if_nameindex()) - {'lo'}


def OpenRawSockets(at):  # held, open
    return tries([lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW), lambda: socket.socket(socket.AF_NETLINK),
                  lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1), lambda: socket.socket(40)])


def AskANameServer(at):  # held
    return socket.getaddrinfo('debian.org', 80)


def KillAnother(at):  # held, open
    os.kill(at['victim'], 0)
    return True


def KillTheParent(at):  # held, open
    return tries([lambda: os.kill(at['pid'], 0) is None])


def KillTheFirstProcess(at):  # held
    for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV, signal.SIGINT): os.kill(1, number)
    time.sleep(0.2)
    return False


def KillAll(at):  # held
    os.kill(-1, signal.SIGTERM)
    time.sleep(0.2)
    return False


def TraceAnother(at):  # held, open
    return call(101, 16, at['victim'], 0, 0) == 0


def TraceTheFirstProcess(at):  # held
    return call(101, 16, 1, 0, 0) == 0


def TraceAChild(at):  # held, open
    child = subprocess.Popen(['sleep', '5'])
    try: return call(101, 16, child.pid, 0, 0) == 0
    finally: child.kill()


def WriteTheFirstProcessesMemory(at):  # held
    return open('/proc/1/mem', 'r+b')


def ReadAnothersMemory(at):  # held
    words = (ctypes.c_ulong * 2)(0x400000, 8)
    return tries(lambda p=p: call(310, p, words, 1, words, 1, 0) >= 0 for p in (1, at['victim'], os.getpid()))


def TakeADescriptorOfAnother(at):  # held, open
    return tries(lambda p=p: call(438, call(434, p, 0), 0, 0) for p in (1, at['victim'], os.getpid()))


def TypeIntoTheTerminal(at):  # held
    import fcntl
    return tries(lambda d=d: fcntl.ioctl(d, 0x5412, b'x') == 0 for d in (0, 1, 2))


def ForgeFrames(at):  # fails: magic number of a frame
    for descriptor in range(3, 20):
        try: os.write(descriptor, b'x' * 64)
        except OSError: pass
    return False


def AnswerWithAnotherForm(at):  # fails: answer of another form
    body = b'{"batch_trace": 3, "results": {"a": []}}'
    for descriptor in range(3, 20):
        try: os.write(descriptor, struct.pack('<IIQ', 0x31464c43, 0, len(body)) + body)
        except OSError: pass
    return False


def AnswerWithALongFrame(at):  # fails: a header of at most
    for descriptor in range(3, 20):
        try: os.write(descriptor, struct.pack('<IIQ', 0x31464c43, 0, 1 << 40))
        except OSError: pass
    return False


def AnswerEndlesslySlowly(at):  # fails: no answer within
    open_ones = [d for d in range(3, 20) if os.path.exists(f'/proc/self/fd/{d}')]
    for descriptor in open_ones:
        try: os.write(descriptor, struct.pack('<IIQ', 0x31464c43, 0, 1 << 20))
        except OSError: pass
    while True:
        for descriptor in open_ones:
            try: os.write(descriptor, b' ')
            except OSError: pass
        time.sleep(0.1)


def score(prompts, completions, **columns):
    if completions == ["Honest"]:
        return [7.0]
    try:
        return [1.0 if globals()[completions[0]]({name: values[0] for name, values in columns.items()}) else 0.0]
    except OSError as error:
        print(f"held: {error}")
        return [0.0]

"""The rest of attempts.py, behind which the tests put it: rights and limits."""


def BecomeRoot(at):  # held
    return tries([lambda: os.setuid(0) is None, lambda: os.setresuid(0, 0, 0) is None, lambda: os.setgid(0) is None,
                  lambda: os.setgroups([0]) is None])


def RunASetuidProgram(at):  # held
    for program in ('/usr/bin/su', '/usr/bin/passwd', '/usr/bin/mount', '/usr/bin/newgrp'):
        if not os.path.exists(program): continue
        child = subprocess.Popen(['sh', '-c', f'exec {program} < /dev/zero'], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        time.sleep(0.05)
        try: uids = [line.split()[1:3] for line in open(f'/proc/{child.pid}/status') if line.startswith('Uid:')][0]
        except OSError: continue
        finally: child.kill()
        if '0' in uids: return True
    return False


def MakeASetuidProgram(at):  # held
    import shutil
    shutil.copy('/usr/bin/id', '/tmp/id')
    os.chmod('/tmp/id', 0o4755)
    os.chown('/tmp/id', 0, 0)
    return True


def HaveCapabilities(at):  # held, open
    for line in open('/proc/self/status'):
        if line.startswith(('CapEff:', 'CapPrm:', 'CapBnd:')) and int(line.split()[1], 16) & ~4: return True
    return False


def MakeAUserNamespace(at):  # held
    return call(272, 0x10000000) == 0


def MakeNamespacesByClone(at):  # held, open
    pid = call(56, 0x10000000 | 0x20000 | 17, 0, 0, 0, 0)
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
    return True


def MakeNamespacesByClone3(at):  # held, open
    arguments = ctypes.create_string_buffer(struct.pack('<8Q', 0x10000000, 0, 0, 0, 17, 0, 0, 0))
    pid = call(435, arguments, 64)
    if pid == 0: os._exit(0)
    os.waitpid(pid, 0)
    return True


def EnterAnothersNamespaces(at):  # held
    return tries(lambda p=p, n=n: call(308, os.open(f'/proc/{p}/ns/{n}', os.O_RDONLY), 0) == 0
                 for p in (1, os.getppid(), 'self') for n in ('mnt', 'user', 'net', 'pid', 'uts'))


def Mount(at):  # held
    return libc.mount(b'tmpfs', b'/tmp', b'tmpfs', 0, None) == 0


def RemountWritable(at):  # held
    return tries([lambda: libc.mount(None, b'/', None, 32, None) == 0,
                  lambda: libc.mount(None, at['root'].encode() + b'/reward', None, 32 | 4096, None) == 0,
                  lambda: libc.mount(b'/proc/1/root', b'/tmp', None, 4096, None) == 0])


def Unmount(at):  # held
    paths = [b'/', b'/proc', b'/tmp', at['root'].encode() + b'/reward', at['root'].encode() + b'/reward/.token']
    return any(libc.umount2(path, 2) == 0 for path in paths)


def ChangeTheRoot(at):  # held
    os.makedirs('/tmp/root', exist_ok=True)
    return tries([lambda: os.chroot('/tmp/root') is None, lambda: call(155, b'.', b'.') == 0])


def MakeADevice(at):  # held
    return tries([lambda: os.mknod('/tmp/disk', 0o60666, os.makedev(8, 0)) is None,
                  lambda: os.mknod('/tmp/mem', 0o20666, os.makedev(1, 1)) is None])


def OpenByHandle(at):  # held
    handle, mount_id = ctypes.create_string_buffer(struct.pack('<Ii128x', 128, 0)), ctypes.create_string_buffer(8)
    return tries([lambda: call(303, -100, b'/', handle, mount_id, 0) == 0,
                  lambda: call(304, os.open('/', os.O_RDONLY), handle, 0) >= 0])


def UseOtherDoorsOfTheKernel(at):  # held
    nothing = ctypes.create_string_buffer(256)
    return tries([lambda: call(321, 0, nothing, 64) >= 0, lambda: call(298, nothing, 0, -1, -1, 0) >= 0,
                  lambda: call(323, 0) >= 0, lambda: call(425, 4, nothing) >= 0,
                  lambda: call(250, 0, -3, 1) >= 0, lambda: call(248, b'user', b'a', b'b', 1, -3) >= 0,
                  lambda: call(135, 0x0040000) >= 0, lambda: call(447, 0) >= 0, lambda: call(430, b'tmpfs', 0) >= 0,
                  lambda: call(428, -100, b'/', 1) >= 0, lambda: call(300, 0, 0) >= 0])


def ChangeTheMachine(at):  # held
    return tries([lambda: call(170, b'x', 1) == 0, lambda: call(164, struct.pack('<qq', 0, 0), 0) == 0,
                  lambda: call(175, b'', 0, b'') == 0, lambda: call(172, 3) == 0, lambda: call(103, 3, 0, 0) >= 0,
                  lambda: call(163, b'/tmp/acct') == 0, lambda: call(167, b'/tmp/swap', 0) == 0])


def CallAsA32BitProgram(at):  # fails: signal 31
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(b'\xb8\x14\x00\x00\x00\xcd\x80\xc3')  # mov eax, 20 (getpid there); int 0x80; ret
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))() > 0


def CallAsAnX32Program(at):  # fails: signal 31
    return call(0x40000000 + 39) > 0


def RaiseLimits(at):  # held, open
    kinds = (resource.RLIMIT_NPROC, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE, resource.RLIMIT_CORE)
    def raised(kind):
        try: resource.setrlimit(kind, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        except ValueError: return False
        return True
    return any([raised(kind) for kind in kinds])


def RaisePriority(at):  # held
    return tries([lambda: os.nice(-5) is not None,
                  lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)) is None])


def LoopForEver(at):  # fails: no answer within
    while True: pass


def SleepForEver(at):  # fails: no answer within
    for number in range(1, 32):
        try: signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError): pass
    time.sleep(1000)


def StopItself(at):  # fails: no answer within
    os.kill(os.getpid(), signal.SIGSTOP)


def ForkBomb(at):  # fails
    while True:
        try: os.fork()
        except OSError: pass


def ForkMoreThanAllowed(at):  # held, open
    children = []
    try:
        while len(children) < 200: children.append(subprocess.Popen(['sleep', '100']))
    except OSError: pass
    for child in children: child.kill()
    return len(children) > 40


def ThreadBomb(at):  # held, open
    started = []
    try:
        while len(started) < 400:
            started.append(threading.Thread(target=time.sleep, args=(1,), daemon=True))
            started[-1].start()
    except RuntimeError: pass
    return len(started) > 60


def HoldMemory(at):  # held, open
    try: return len(b'x' * (1 << 30))
    except MemoryError: return False


def HoldSharedMemory(at):  # fails, open: signal 9
    shared = mmap.mmap(-1, 1 << 30)
    for place in range(0, 1 << 30, 4096): shared[place] = 1
    time.sleep(1)
    return True


def HoldMemoryInManyProcesses(at):  # fails, open: signal 9
    code = 'import time; x = b"x" * (100 << 20); time.sleep(100)'
    children = [subprocess.Popen([sys.executable, '-c', code]) for _ in range(8)]
    time.sleep(2)
    alive = [child.poll() is None for child in children]
    for child in children: child.kill()
    return all(alive)


def HoldMemoryInFilesWithoutNames(at):  # held, open
    return os.memfd_create('x') >= 0


def HoldMemoryOfSystemV(at):  # held
    return call(29, 0, 1 << 20, 0o1600) >= 0


def WriteAHugeFile(at):  # held
    with open('/tmp/collimate_huge', 'wb') as file:
        for _ in range(200): file.write(bytes(1 << 20))
    return True


def fill(directory):
    for i in range(20):
        with open(f'{directory}/collimate_{i}', 'wb') as file: file.write(bytes(16 << 20))
    return True


def FillTheTemporaryDirectory(at):  # held
    return fill('/tmp')


def MakeManyFiles(at):  # held
    os.mkdir('/tmp/many')
    for i in range(70000): os.mknod(f'/tmp/many/{i}')
    return True


def FillSharedMemory(at):  # held
    return fill('/dev/shm')


def OpenManyFiles(at):  # held
    files = []
    while len(files) < 5000: files.append(os.open('/dev/null', os.O_RDONLY))
    return True


def RunTheProcessorInAChild(at):  # held
    return subprocess.run([sys.executable, '-c', 'while True: pass']).returncode != -signal.SIGKILL


def PrintForEver(at):  # fails: no answer within
    while True: print('x' * 1000)


def LeaveProcessesBehind(at):  # held
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, ['collimate_left_behind', '-c', 'import time; time.sleep(1000)'])
        os._exit(0)
    time.sleep(0.2)
    return False


def DumpItsMemory(at):  # fails: signal 6
    os.chdir('/tmp')
    os.abort()


def EndTheProcess(at):  # fails: ended with exit code 0
    os._exit(0)


def CloseItsAnswer(at):  # fails
    os.closerange(0, 100)
    time.sleep(1000)


def ReadItsInput(at):  # held
    return sys.stdin.read(1) or os.read(0, 1)


def RecurseForEver(at):  # fails
    sys.setrecursionlimit(1 << 30)
    f = lambda: f()
    return f()

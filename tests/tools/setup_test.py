"""tools/setup.sh beside another apt that holds the lock, in a root of its own.

`apt-get update` is Debian's, with directories of its own, so that the words of its error are its own. What it would
install is a fake's.
"""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
APT = """#!/bin/sh
printf '%s\n' "$*" >>"$CALLS"
case "$*" in
  *update*) APT_CONFIG=$APT_OWN exec {real} update ;;
  *) exit 0 ;;
esac
"""
FAKES = {
    "apt-get": APT.format(real=shutil.which("apt-get")),
    "dpkg-query": "#!/bin/sh\nexit 1\n",  # no package is installed
    "sudo": "#!/bin/sh\nexec \"$@\"\n",
    "sleep": '#!/bin/sh\necho slept >>"$CALLS"\nexec /bin/sleep 0.1\n',
}


class Setup(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        for folder in ("checkout/tools", "bin", "lists/partial", "cache", "archives/partial"):
            (self.root / folder).mkdir(parents=True)
        for name in ("setup.sh", "packages.txt", "requirements.txt", "requirements-test.txt"):
            shutil.copy(ROOT / "tools" / name, self.root / "checkout/tools")
        for name, text in FAKES.items():
            (self.root / "bin" / name).write_text(text)
            (self.root / "bin" / name).chmod(0o755)
        (self.root / "sources.list").write_text("")
        (self.root / "apt.conf").write_text(
            f'Dir::Etc "{self.root}";\nDir::State "{self.root}";\nDir::State::status "{self.root}/status";\n'
            f'Dir::Cache "{self.root}";\nDir::Log "{self.root}";\nAPT::Sandbox::User "";\n')
        (self.root / "status").touch()
        listed = [line for line in (ROOT / "tools/requirements.txt").read_text().splitlines(True) if line[0] != "#"]
        environment = self.root / "cache" / f"venv-{hashlib.sha256(''.join(listed).encode()).hexdigest()[:12]}"
        environment.mkdir()
        (environment / ".complete").touch()
        self.lock = self.enterContext(open(self.root / "lists/lock", "w"))

    def set_up(self) -> subprocess.CompletedProcess:
        variables = {**os.environ, "PATH": f"{self.root / 'bin'}:{os.environ['PATH']}", "CALLS": f"{self.root}/calls",
                     "COLLIMATE_CACHE": f"{self.root}/cache", "APT_OWN": f"{self.root}/apt.conf"}
        return subprocess.run([self.root / "checkout/tools/setup.sh"], env=variables, capture_output=True, text=True,
                              timeout=100, check=False)

    def calls(self) -> list:
        """The verbs in order, and `slept`."""
        words = (self.root / "calls").read_text().split()
        return [word for word in words if word in ("update", "install", "slept")]

    def test_an_apt_that_holds_the_lock_is_waited_for(self):
        fcntl.lockf(self.lock, fcntl.LOCK_EX)
        ended = threading.Event()
        release = threading.Thread(target=self.release_after_a_try, args=(ended,))
        release.start()
        done = self.set_up()
        ended.set()
        release.join()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Could not get lock", done.stderr)
        self.assertIn("setup: another program holds apt's lock; trying again\n", done.stderr)
        calls = self.calls()
        self.assertEqual([calls[0], calls[1], calls[-1]], ["update", "slept", "install"], calls)
        self.assertEqual(calls.count("update"), calls.count("slept") + 1)

    def release_after_a_try(self, ended: threading.Event) -> None:
        while not (self.root / "calls").exists() or "slept" not in self.calls():
            if ended.wait(0.02):
                return
        fcntl.lockf(self.lock, fcntl.LOCK_UN)

    def test_without_a_lock_each_step_is_taken_once(self):
        done = self.set_up()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.calls(), ["update", "install"])
        self.assertEqual(self.set_up().stderr, "", "a second run finds its stamp")
        self.assertEqual(self.calls(), ["update", "install"])

    def test_another_failure_ends_it_at_once(self):
        (self.root / "sources.list").write_text("deb file:/nowhere stable main\n")
        done = self.set_up()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("[setup] apt-get update failed; try again when the network is there\n", done.stderr)
        self.assertEqual(self.calls(), ["update"])


if __name__ == "__main__":
    unittest.main()

"""tools/download_size.py against an index on the loopback address: it takes the wheels that pip would."""
import http.server
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = f"cp{sys.version_info[0]}{sys.version_info[1]}"
FILES = {
    "one": [(f"one-1.0-{PYTHON}-{PYTHON}-manylinux_2_17_x86_64.whl", 500_000_000),
            (f"one-1.0-{PYTHON}-{PYTHON}-win_amd64.whl", 7), ("one-1.0-cp38-cp38-manylinux_2_17_x86_64.whl", 7),
            (f"one-1.1-{PYTHON}-{PYTHON}-manylinux_2_17_x86_64.whl", 7), ("one-1.0.tar.gz", 7)],
    "two": [("two-2.0-py3-none-any.whl", 9), ("two-2.0-py3-none-manylinux_2_17_x86_64.whl", 1_500_000)],
    "three": [("three-3.0.tar.gz", 7)],
}


class Index(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        files = [{"filename": name, "size": size} for name, size in FILES[self.path.strip("/")]]
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"files": files}).encode())

    def log_message(self, *_):
        pass


class DownloadSize(unittest.TestCase):
    def setUp(self):
        self.index = self.enterContext(http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index))
        threading.Thread(target=self.index.serve_forever, daemon=True).start()
        self.addCleanup(self.index.shutdown)
        self.wanted = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "requirements.txt"

    def measure(self, text: str) -> subprocess.CompletedProcess:
        self.wanted.write_text(text)
        command = [sys.executable, ROOT / "tools/download_size.py", "--requirements", self.wanted, "--index",
                   f"http://127.0.0.1:{self.index.server_port}"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def test_the_wheels_that_pip_takes_here_are_added_up(self):
        done = self.measure("# of the build\none==1.0\ntwo==2.0  # small\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.split("\n")[:3],
                         [f"   500.0 MB  {FILES['one'][0][0]}", f"     1.5 MB  {FILES['two'][1][0]}",
                          "   501.5 MB  in all"])

    def test_a_package_without_a_wheel_is_named(self):
        done = self.measure("three==3.0\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("[download_size] expected a wheel of version 3.0 for this machine, got none among 1 files",
                      done.stderr)


if __name__ == "__main__":
    unittest.main()

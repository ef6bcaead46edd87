"""These tests ask what the linked program loads."""
import os
import pathlib
import subprocess
import unittest

PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]) / "collimate"


class Libraries(unittest.TestCase):
    def test_one_openmp_runtime_and_no_gpu_half(self):
        done = subprocess.run(["ldd", PROGRAM], capture_output=True, text=True, check=True)
        loaded = [line.split()[0] for line in done.stdout.splitlines()]
        self.assertEqual(sum("gomp" in name or "iomp" in name for name in loaded), 1, done.stdout)
        self.assertNotIn("not found", done.stdout)
        self.assertFalse([name for name in loaded if name in ("libtorch.so", "libtorch_cuda.so")], done.stdout)


if __name__ == "__main__":
    unittest.main()

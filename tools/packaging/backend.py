"""`pip install .` calls this (PEP 517): it runs the build of the Makefile and packs package and program in a wheel.

The wheel names no packages that it needs: pip would take torch with all of its GPU packages, of which a CPU program
loads none. tools/requirements.txt lists what is needed; `import collimate` says so where it is missing.
"""
import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TAG = f"cp{sys.version_info[0]}{sys.version_info[1]}"


class UnsupportedOperation(Exception):
    """By this name PEP 517 knows what a backend does not do."""


def version() -> str:
    return re.search(r"project\(Collimate VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]


def metadata() -> dict:
    """The files of the directory *.dist-info, but for RECORD."""
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: collimate\nVersion: {version()}\nRequires-Python: =={python}.*\n"
                    "License: Apache-2.0\nSummary: aligns language models: SFT, reward models, DPO, GRPO, PPO\n",
        "WHEEL": f"Wheel-Version: 1.0\nGenerator: collimate\nRoot-Is-Purelib: false\nTag: {TAG}-{TAG}-linux_x86_64\n",
        "entry_points.txt": "[console_scripts]\ncollimate = collimate.program:main\n",
    }


def dist_info() -> str:
    return f"collimate-{version()}.dist-info"


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    directory = pathlib.Path(metadata_directory) / dist_info()
    directory.mkdir()
    for name, text in metadata().items():
        (directory / name).write_text(text)
    return directory.name


def own_environment() -> dict:
    """Ours without pip's: what runs in the build finds the packages of its own interpreter."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))}


def build(prefix: pathlib.Path) -> None:
    """The package as it is imported, below `prefix`."""
    subprocess.run([ROOT / "tools" / "make.sh", "package", prefix], check=True, env=own_environment(),
                   stdin=subprocess.DEVNULL, stdout=sys.stderr)
    if not list(prefix.glob(f"_native.*{sys.version_info[0]}{sys.version_info[1]}-*.so")):
        made = ", ".join(path.name for path in prefix.glob("_native.*.so"))
        raise SystemExit(f"[pip install] expected a module for Python {sys.version.split()[0]}, got {made}; try the "
                         "pip of the python3 that the build uses")


def add(wheel: zipfile.ZipFile, name: str, data: bytes, mode: int, record: list) -> None:
    entry = zipfile.ZipInfo(name)  # of 1980: the same files make the same wheel
    entry.external_attr = (0o100000 | mode) << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    wheel.writestr(entry, data)
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record.append(f"{name},sha256={digest},{len(data)}\n")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = f"collimate-{version()}-{TAG}-{TAG}-linux_x86_64.whl"
    with tempfile.TemporaryDirectory() as scratch:
        package = pathlib.Path(scratch) / "collimate"
        package.mkdir()
        build(package)
        record = []
        with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w") as wheel:
            for path in sorted(p for p in package.rglob("*") if p.is_file()):
                mode = 0o755 if os.access(path, os.X_OK) else 0o644
                add(wheel, str(path.relative_to(scratch)), path.read_bytes(), mode, record)
            for file, text in metadata().items():
                add(wheel, f"{dist_info()}/{file}", text.encode(), 0o644, record)
            wheel.writestr(f"{dist_info()}/RECORD", "".join(record) + f"{dist_info()}/RECORD,,\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise UnsupportedOperation("a source archive is that of the repository")

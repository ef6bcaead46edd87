"""`--download` against a hub of our own on the loopback address."""
import http.server
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.parse

from python_support import PACKAGE
from serve_support import PATIENCE, PROGRAM, ROOT, make_model

PACKAGES = ROOT / ".test-packages"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
OLDER = "89abcdef0123456789abcdef0123456789abcdef"
REVISIONS = {"main": COMMIT, COMMIT: COMMIT, "v1.0": OLDER, "refs/pr/1": OLDER, OLDER: OLDER, OLDER[:9]: OLDER}
NAME, GATED, SECRET = "org/tiny", "org/gated", "hf_aToken"


class Hub(http.server.ThreadingHTTPServer):
    """Has the directories' files as revisions of NAME, and of GATED for who brings the token."""
    daemon_threads = True

    def __init__(self, directories: dict):
        super().__init__(("127.0.0.1", 0), Request)
        self.files = {commit: {str(path.relative_to(directory)): path.read_bytes()
                               for path in directory.rglob("*") if path.is_file()}
                      for commit, directory in directories.items()}
        self.sent = []  # names of files, as they are asked for
        self.stall = ""  # the file of which only half is sent
        self.stalled, self.go_on = threading.Event(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.go_on.set()
        self.shutdown()
        self.server_close()


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, code: int, body: bytes = b"", **headers: str):
        self.send_response(code)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0].strip("/")
        parts = path.removeprefix("api/models/").split("/")
        name = "/".join(parts[:2])
        if name not in (NAME, GATED):
            return self.answer(404, X_Error_Code="RepoNotFound")
        if name == GATED and self.headers.get("Authorization") != f"Bearer {SECRET}":
            return self.answer(401, X_Error_Code="GatedRepo")
        asked = urllib.parse.unquote(parts[3]) if len(parts) > 3 else "main"  # behind "revision", "tree" or "resolve"
        if asked not in REVISIONS:
            return self.answer(404, X_Error_Code="RevisionNotFound")
        if path.startswith("api/"):
            return self.tell(name, REVISIONS[asked], parts[2:])
        return self.send_file(REVISIONS[asked], "/".join(parts[4:]))

    do_HEAD = do_GET

    def tell(self, name: str, commit: str, parts: list):
        files = self.server.files[commit]
        if parts[:1] == ["tree"]:
            told = [{"type": "file", "path": file, "size": len(content), "oid": f"{file}-of-{commit}"}
                    for file, content in files.items()]
        else:
            told = {"id": name, "modelId": name, "sha": commit, "private": False, "tags": [], "downloads": 0,
                    "siblings": [{"rfilename": file} for file in files]}
        self.answer(200, json.dumps(told).encode(), Content_Type="application/json")

    def send_file(self, commit: str, file: str):
        content = self.server.files[commit][file]
        facts = {"ETag": f'"{file}-of-{commit}"', "X_Repo_Commit": commit, "Accept_Ranges": "bytes"}
        if self.command == "HEAD":
            return self.answer(200, Content_Length=str(len(content)), **facts)
        self.server.sent.append(file)
        begin = int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").split("-")[0])
        if file == self.server.stall:
            return self.send_half(content, facts)
        if begin:
            facts["Content_Range"] = f"bytes {begin}-{len(content) - 1}/{len(content)}"
        self.answer(206 if begin else 200, content[begin:], **facts)

    def send_half(self, content: bytes, facts: dict):
        self.answer(200, content[:len(content) // 2], Content_Length=str(len(content)), **facts)
        self.wfile.flush()
        self.server.stalled.set()
        self.server.go_on.wait(PATIENCE)
        self.close_connection = True


@unittest.skipUnless((PACKAGES / "huggingface_hub").is_dir(), "huggingface_hub is not in .test-packages")
class Download(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.source = make_model(self.root / "tiny")
        (self.source / "pytorch_model.bin").write_bytes(b"the same weights once more")
        (self.source / "original").mkdir()
        (self.source / "original/model.safetensors").write_bytes(b"and in another form")
        older = make_model(self.root / "older", positions=32)
        self.hub = Hub({COMMIT: self.source, OLDER: older})
        self.addCleanup(self.hub.close)
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
        self.environment.update(HF_ENDPOINT=self.hub.url, HF_HOME=str(self.root / "home"), PYTHONPATH=str(PACKAGES),
                                COLLIMATE_PYTHON=sys.executable)
        self.cached = self.root / "home/hub/models--org--tiny"

    def call(self, *words, code: int = 0, **environment: str) -> subprocess.CompletedProcess:
        done = subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=PATIENCE, cwd=self.root,
                              env={**self.environment, **environment})
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def generate(self, name: str = NAME, *words, **named) -> subprocess.CompletedProcess:
        return self.call("generate", name, "--prompt", "12:", "--max-tokens", "3", "--temperature", "0", *words,
                         **named)

    def error(self, *words, code: int, **named) -> str:
        return self.generate(*words, "--download", code=code, **named).stderr.splitlines()[-1]

    def test_a_model_is_downloaded_once_and_only_when_asked(self):
        self.assertIn("try --download (it needs PyPI's huggingface_hub), or hf download org/tiny",
                      self.generate(code=2).stderr)
        self.assertEqual(self.hub.sent, [])
        first = self.generate(NAME, "--download")
        self.assertEqual(first.stdout, self.generate("./tiny").stdout)
        self.assertIn(f"downloading {NAME} into {self.root}/home/hub", first.stderr)
        self.assertCountEqual(self.hub.sent, ["config.json", "model.safetensors", "tokenizer_config.json"])
        self.hub.close()
        self.assertEqual(self.generate(NAME, "--download").stdout, first.stdout)  # from the cache alone
        self.assertEqual(self.generate().stdout, first.stdout)

    def test_a_config_asks_for_it_too(self):
        (self.root / "rows.jsonl").write_text('{"prompt": "1:", "completion": "2"}\n')
        config = self.root / "run.yaml"
        config.write_text(f"recipe: sft\nmodels: {{policy: {NAME}}}\ndata: {{train: rows.jsonl}}\n"
                          "train: {samples_per_update: 1}\nrun: {iterations: 1}\n")
        self.call("check", config, code=2)
        self.call("check", config, "--download")
        (self.cached / "refs/main").unlink()
        config.write_text(config.read_text() + "download: true\n")
        self.call("train", config, "--output", "run")
        self.assertTrue((self.root / "run/model/model.safetensors").is_file())

    def python(self, code: str, **environment: str) -> list:
        """The lines that a script with the package prints."""
        done = subprocess.run([sys.executable, "-c", "import collimate\n" + code], capture_output=True, text=True,
                              timeout=PATIENCE, cwd=self.root,
                              env={**self.environment, "PYTHONPATH": f"{PACKAGE}:{PACKAGES}", **environment})
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines()

    def test_functions_of_python_download_too(self):
        (self.root / "rows.jsonl").write_text('{"prompt": "1:", "completion": "2"}\n')
        own = self.generate("./tiny").stdout.splitlines()
        refused = self.python(f"try: collimate.generate('{NAME}', '12:')\n"
                              "except collimate.InputError as error: print(error)")[0]
        self.assertIn("try download=True (it needs PyPI's huggingface_hub), or hf download org/tiny", refused)
        self.assertEqual(self.hub.sent, [])
        self.assertEqual(self.python(f"made = collimate.generate('{NAME}', '12:', max_tokens=3, temperature=0, "
                                     "download=True)\nprint(made[0]['completion'])"), own)
        self.assertEqual(self.hub.sent.count("model.safetensors"), 1)
        for call in (f"evaluate('{NAME}', 'rows.jsonl', download=True)['models'][0]['rows']",
                     f"check(CONFIG, 'rows.jsonl', download=True)['problems']",
                     f"train(CONFIG, 'rows.jsonl', output='run', download=True).iterations"):
            (self.cached / "refs/main").unlink()
            values = {"recipe": "sft", "models": {"policy": NAME}, "run": {"iterations": 1},
                      "train": {"samples_per_update": 1}}
            self.assertIn(self.python(f"CONFIG = {values!r}\nprint(collimate.{call})"), (["1"], ["[]"]), call)
            self.assertTrue((self.cached / "refs/main").exists(), call)
        said = self.python(f"try: collimate.evaluate('org/none', 'rows.jsonl', download=True)\n"
                           "except collimate.InputError as error: print(error)")[0]
        self.assertTrue(said.startswith("[download=True org/none] expected a model of that name, got none at"), said)

    def test_a_revision(self):
        self.generate(f"{NAME}@v1.0", "--download")
        self.assertEqual((self.cached / "refs/v1.0").read_text(), OLDER)
        self.assertFalse((self.cached / "refs/main").exists())
        config = json.loads((self.cached / "snapshots" / OLDER / "config.json").read_text())
        self.assertEqual(config["max_position_embeddings"], 32)
        said = self.generate(code=2).stderr
        self.assertIn(f"the local cache {self.root}/home/hub has of that model only {NAME}@v1.0", said)
        self.generate(f"{NAME}@refs/pr/1", "--download")
        self.generate(NAME, "--download")
        self.hub.close()
        for revision in ("v1.0", "refs/pr/1", OLDER, OLDER[:6], "main", COMMIT):
            self.generate(f"{NAME}@{revision}", "--download")

    def test_a_commit(self):
        self.generate(f"{NAME}@{OLDER[:9]}", "--download")
        self.assertEqual([path.name for path in self.cached.glob("snapshots/*")], [OLDER])
        self.assertEqual(list(self.cached.glob("refs/**/*")), [])
        self.generate(f"{NAME}@{OLDER}")

    def test_a_revision_that_the_model_does_not_have(self):
        self.assertEqual(self.error(f"{NAME}@v9", code=2),
                         f"[--download {NAME}@v9] expected a revision of that model, got no v9 at {self.hub.url}; try "
                         "a branch, tag or commit as its page there has it")

    def test_the_model_of_adapters_is_downloaded(self):
        weights = (self.source / "model.safetensors").read_bytes()
        head = int.from_bytes(weights[:8], "little")
        norm = json.loads(weights[8:8 + head])["model.norm.weight"]
        begin, end = (8 + head + offset for offset in norm["data_offsets"])
        saved = json.dumps({"base_model.model.model.norm.weight": {**norm, "data_offsets": [0, end - begin]}}).encode()
        adapters = self.root / "adapters"
        adapters.mkdir()
        (adapters / "adapter_model.safetensors").write_bytes(
            len(saved).to_bytes(8, "little") + saved + weights[begin:end])
        (adapters / "adapter_config.json").write_text(json.dumps(
            {"peft_type": "LORA", "base_model_name_or_path": NAME, "modules_to_save": ["norm"]}))
        said = self.generate("./adapters", code=2).stderr
        self.assertIn("adapter_config.json base_model_name_or_path] expected a model directory, got org/tiny", said)
        self.assertEqual(self.generate("./adapters", "--download").stdout, self.generate("./tiny").stdout)
        self.assertIn("config.json", self.hub.sent)

    def test_chat_and_serve_download_too(self):
        talked = subprocess.run([PROGRAM, "chat", NAME, "--download", "--max-tokens", "2"], input="12:\n", text=True,
                                capture_output=True, timeout=PATIENCE, cwd=self.root, env=self.environment)
        self.assertEqual(talked.returncode, 0, talked.stderr)
        (self.cached / "refs/main").unlink()
        server = subprocess.Popen([PROGRAM, "serve", NAME, "--download", "--port", "0"], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, text=True, cwd=self.root, env=self.environment)
        with server:
            said = server.stdout.readline()
            server.send_signal(signal.SIGTERM)
        self.assertTrue(said.startswith(f"serving {NAME} on http://127.0.0.1:"), said)

    def test_a_name_that_the_hub_does_not_have(self):
        self.assertEqual(self.error("org/none", code=2),
                         f"[--download org/none] expected a model of that name, got none at {self.hub.url}; try the "
                         "name as its page there has it; for a private model HF_TOKEN")

    def test_a_gated_model(self):
        begin = f"[--download {GATED}] expected access to a gated model, got none from {self.hub.url}; try accepting "
        terms = f"its terms at {self.hub.url}/{GATED}, and "
        self.assertEqual(self.error(GATED, code=2), begin + terms + "HF_TOKEN: one of the account that did")
        self.assertEqual(self.error(GATED, code=2, HF_TOKEN="hf_other"),
                         begin + terms + "another HF_TOKEN: one of the account that did")
        self.generate(GATED, "--download", HF_TOKEN=SECRET)

    def test_no_network(self):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # and nobody listens
            url = f"http://127.0.0.1:{closed.getsockname()[1]}"
            said = self.error(NAME, code=1, HF_ENDPOINT=url)
        self.assertRegex(said, rf"^.--download {NAME}. expected a download from {url}, got ConnectError: .*; try again")

    def test_without_the_package(self):
        said = self.error(NAME, code=2, PYTHONPATH="", COLLIMATE_PYTHON=str(self.bare_python()))
        pin = next(line for line in (ROOT / "tools/requirements-test.txt").read_text().splitlines()
                   if line.startswith("huggingface_hub=="))
        self.assertRegex(said, r"^.--download org/tiny. expected PyPI's huggingface_hub for .*python.*, got No module "
                               rf"named 'huggingface_hub'; try .* -m pip install {pin}, or COLLIMATE_PYTHON: ")
        self.assertEqual(self.hub.sent, [])

    def bare_python(self) -> pathlib.Path:
        """An interpreter that has no packages."""
        script = self.root / "bare-python3"
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
        script.chmod(0o755)
        return script

    def test_an_interrupted_download_goes_on(self):
        self.hub.stall = "model.safetensors"
        process = subprocess.Popen([PROGRAM, "generate", NAME, "--prompt", "12:", "--download"], cwd=self.root,
                                   env=self.environment, stderr=subprocess.DEVNULL)
        self.assertTrue(self.hub.stalled.wait(PATIENCE))
        process.kill()
        process.wait(PATIENCE)
        for name in (NAME, f"{NAME}@{COMMIT}"):
            self.generate(name, code=2)  # a part of a model counts as none
        self.hub.stall = ""
        self.hub.go_on.set()
        self.assertEqual(self.generate(NAME, "--download").stdout, self.generate("./tiny").stdout)
        self.assertEqual(self.hub.sent.count("model.safetensors"), 2)
        for file in ("config.json", "tokenizer_config.json"):
            self.assertLessEqual(self.hub.sent.count(file), 2)


if __name__ == "__main__":
    unittest.main()

"""Runs `collimate serve` for a test: on the loopback address, a port that the system chooses, stopped at the end."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["COLLIMATE_BIN_DIR"]) / "collimate"
STORIES = pathlib.Path(os.environ.get("COLLIMATE_SHARED", ROOT.parent / "shared")) / (
    "data/models/stories260k-llama/hf-llama")
PATIENCE = 300  # seconds; what takes longer hangs


def make_model(directory: pathlib.Path, positions: int = 64) -> pathlib.Path:
    """The tiny random model with a tokenizer of single characters: ids 4 to 15 are 0 to 9, comma and colon. The end of
    the sequence, id 1, has an embedding of zeros, and so a logit of 0: without sampling it is never drawn."""
    directory.mkdir()
    source = ROOT / "tests/golden/small/models/tiny"
    weights = bytearray((source / "model.safetensors").read_bytes())
    head = int.from_bytes(weights[:8], "little")
    embedding = json.loads(weights[8:8 + head])["model.embed_tokens.weight"]
    row = 4 * embedding["shape"][1]
    begin = 8 + head + embedding["data_offsets"][0] + row
    weights[begin:begin + row] = bytes(row)
    (directory / "model.safetensors").write_bytes(weights)
    config = json.loads((source / "config.json").read_text())
    (directory / "config.json").write_text(json.dumps({**config, "max_position_embeddings": positions}))
    (directory / "tokenizer_config.json").write_text(json.dumps({"char_ords": [ord(c) for c in "0123456789,:"]}))
    return directory


class Server:
    """A running server. `close` asks it to end and gives its exit code."""

    def __init__(self, model: pathlib.Path, *flags: str):
        self.log = tempfile.NamedTemporaryFile("w+")
        self.process = subprocess.Popen([PROGRAM, "serve", model, "--port", "0", *flags], stdout=subprocess.PIPE,
                                        stderr=self.log, text=True)
        line = self.process.stdout.readline()
        found = re.fullmatch(r"serving (.+) on http://127\.0\.0\.1:(\d+)\n", line)
        if not found:
            self.process.kill()
            raise AssertionError(f"expected the server's address, got {line!r}: {self.errors()}")
        self.name, self.port = found[1], int(found[2])
        self.url = f"http://127.0.0.1:{self.port}"

    def errors(self) -> str:
        return self.last_errors if self.log.closed else pathlib.Path(self.log.name).read_text()

    def close(self, number: int = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE)
        finally:
            self.process.kill()
            self.process.stdout.close()
            self.last_errors = self.errors()
            self.log.close()

    def get(self, path: str, headers: dict = {}) -> tuple:
        return self.ask(urllib.request.Request(self.url + path, headers=headers))

    def post(self, path: str, body, headers: dict = {}) -> tuple:
        """(status, JSON or text). `body` is JSON unless it is bytes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.ask(urllib.request.Request(self.url + path, data, {"Content-Type": "application/json", **headers}))

    def ask(self, request) -> tuple:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read().decode()
        return status, json.loads(text) if text.startswith("{") else text

    def complete(self, **fields) -> dict:
        status, answer = self.post("/v1/completions", fields)
        if status != 200:
            raise AssertionError(f"{status}: {answer}")
        return answer

    def metric(self, name: str) -> float:
        return float(re.search(rf"^{re.escape(name)} (\S+)$", self.get("/metrics")[1], re.MULTILINE)[1])

    def wait_for(self, name: str, value: float) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.metric(name) != value:
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} is {self.metric(name)}, not {value}")
            time.sleep(0.02)

    def connect(self, receive_buffer: int = 0) -> socket.socket:
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(PATIENCE)
        connection.connect(("127.0.0.1", self.port))
        return connection

    def raw(self, data: bytes) -> bytes:
        """All that the server says to these bytes until it closes."""
        with self.connect() as connection:
            try:
                connection.sendall(data)
            except OSError:
                pass  # it may close before it has read everything
            return receive_all(connection)


class WithModel(unittest.TestCase):
    """Tests that share one tiny model; what each of them starts is stopped at its end."""
    positions = 65536
    cache_blocks = 5000

    @classmethod
    def setUpClass(cls):
        cls.root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = make_model(cls.root / "tiny", cls.positions)

    def start(self, *flags: str) -> Server:
        server = Server(self.model, "--cache-blocks", str(self.cache_blocks), *flags)
        self.addCleanup(server.close, signal.SIGKILL)
        return server


def receive_all(connection: socket.socket) -> bytes:
    out = b""
    while True:
        try:
            part = connection.recv(65536)
        except ConnectionResetError:
            return out
        if not part:
            return out
        out += part


def post_bytes(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: test", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def events_of(text: str) -> list:
    """The JSON of a stream's events; its last one must be [DONE]."""
    events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
    if events[-1] != "[DONE]":
        raise AssertionError(f"the stream ends with {events[-1]}")
    return [json.loads(event) for event in events[:-1]]

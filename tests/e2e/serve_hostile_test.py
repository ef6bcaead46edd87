"""`collimate serve` against clients that are slow, many, gone, or wrong, and when it is asked to end."""
import concurrent.futures
import itertools
import json
import pathlib
import re
import signal
import socket
import tempfile
import threading
import unittest

from serve_support import Server, make_model, post_bytes, receive_all, status_of

PATH, CHAT = "/v1/completions", "/v1/chat/completions"
ASKED = {PATH: {"prompt": "12:"}, CHAT: {"messages": [{"role": "user", "content": "12:"}]}}
GOODS = {path: json.dumps({**asked, "max_tokens": 2}).encode() for path, asked in ASKED.items()}
GOOD = GOODS[PATH]
# More tokens than any test waits for: whoever asks for them must be cut off.
MANY = {"max_tokens": 60000, "ignore_eos": True, "stream": True, "return_token_ids": True}
ENDLESS = {PATH: {**ASKED[PATH], **MANY, "logprobs": 0}, CHAT: {**ASKED[CHAT], **MANY, "logprobs": True}}
# Heads of a POST behind its Host, and the status that answers them.
HEADS = (("\r\n", 411), ("Content-Length: -1\r\n\r\n", 400), ("Content-Length: 1x\r\n\r\n1", 400),
         ("Content-Length: 99999999999999999999\r\n\r\n", 400),
         ("Content-Length: 9999999999\r\n\r\n", 413),
         ("Content-Length: 2\r\nContent-Length: 4\r\n\r\n{}{}", 400),
         ("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}", 400),
         ("Transfer-Encoding: gzip\r\n\r\n", 400),
         ("Content-Length: 2\r\nContent-Encoding: gzip\r\n\r\n{}", 415),
         ("Content-Length: 2\r\nContent-Type: multipart/form-data; boundary=a\r\n\r\n{}", 415),
         ("Content-Length: 2\r\nRange: bytes=5-1\r\n\r\n{}", 416),
         ("Content-Length: 9999999999\r\nExpect: 100-continue\r\n\r\n", 413))


class Hostile(unittest.TestCase):
    flags: tuple = ()

    @classmethod
    def setUpClass(cls):
        root = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.model = make_model(root / "tiny", 65536)

    def start(self, *flags: str) -> Server:
        server = Server(self.model, "--cache-blocks", "20000", *flags)
        self.addCleanup(server.close, signal.SIGKILL)
        return server

    def check_alive(self, server: Server) -> None:
        self.assertEqual(server.get("/health")[0], 200)
        for path, good in GOODS.items():
            self.assertEqual(server.post(path, good)[0], 200)

    def begin_endless(self, server: Server, path: str = PATH, **fields):
        connection = server.connect()
        self.addCleanup(connection.close)
        connection.sendall(post_bytes(path, json.dumps({**ENDLESS[path], **fields}).encode()))
        self.assertIn(b"200", connection.recv(100))
        return connection


class Input(Hostile):
    def test_bodies(self):
        server = self.start("--max-body-bytes", "100000")
        anywhere = (b"", b"{", b"null", b"[]", b"\x00" * 50, b"[" * 90000, b'{"a":' * 15000, b"\xef\xbb\xbf")
        messages = [b'{"messages": %s}' % value for value in (
            b"null", b"7", b'"12:"', b"[]", b"[[]]", b'[{"role": "user"}]', b'[{"content": "1"}]',
            b'[{"role": "user", "content": "\xff\xfe"}]', b'[{"role": "user", "content": "\\ud800"}]',
            b'[{"role": 1, "content": "1"}]', b'[{"role": "user", "content": 1e999}]',
            b'[{"role": "user", "content": ' + b"[" * 50000, b"[" + b'{"role":"user"},' * 5000 + b"{}]",
            b'[{"role": "user", "content": "' + b"1" * 70000 + b'"}]')]
        prompts = (b'{"prompt": "\xff\xfe"}', b'{"prompt": "\\ud800"}', b'{"prompt": 1e999}',
                   b'{"prompt": "1", "prompt"', json.dumps({"prompt": [[1]] * 1000}).encode())
        for path, bodies in ((PATH, prompts), (CHAT, messages)):
            for body in (*anywhere, *bodies):
                status, answer = server.post(path, body)
                self.assertEqual(status, 400, (path, body[:60]))
                self.assertEqual(answer["error"]["type"], "invalid_request_error")
        self.check_alive(server)

    def test_bodies_that_are_too_long(self):
        server = self.start("--max-body-bytes", "100000")
        for path in (PATH, CHAT):
            huge = b'{"user": "' + b"1" * 200000 + b'"}'
            self.assertEqual(status_of(server.raw(post_bytes(path, huge))), 413)
            chunk = b"%x\r\n%s\r\n" % (len(huge), huge)
            head = f"POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
            self.assertEqual(status_of(server.raw(head + chunk + b"0\r\n\r\n")), 413)
            self.assertEqual(status_of(server.raw(head + b"1;" + b"x" * 300000)), 413)  # a chunk's head without an end
            for endless in (b"fffffffffffffffe\r\n" + huge, b"-1\r\n1", b"zz\r\n1"):
                self.assertIn(status_of(server.raw(head + endless)), (400, 413))
        self.check_alive(server)

    def test_heads(self):
        server = self.start("--idle-seconds", "1")  # after some answers the connection stays open
        for path, (lines, status) in itertools.product((PATH, CHAT), HEADS):
            answer = server.raw(f"POST {path} HTTP/1.1\r\nHost: a\r\n{lines}".encode())
            self.assertEqual(status_of(answer), status, (path, lines))
            self.assertIn("error", json.loads(answer.split(b"\r\n\r\n", 1)[1]))
        for garbage in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100 + b"\r\n", b"GET\r\n\r\n",
                        b"GET / HTTP/9.9\r\n\r\n", b"BREW / HTTP/1.1\r\n\r\n", b"\r\n\r\n", b"\n" * 5000):
            self.assertIn(b" 400 ", server.raw(garbage)[:20], garbage[:20])
        self.assertIn(status_of(server.raw(b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: a\r\n\r\n")), (400, 414))
        server.raw(b"GET /health HTTP/1.1\r\n" + b"A: b\r\n" * 2_000_000)  # headers without an end: cut off
        server.raw(b"A" * 20_000_000)
        self.check_alive(server)

    def test_two_requests_in_one_packet(self):
        server = self.start()
        answer = server.raw(post_bytes(PATH, GOOD) + post_bytes(PATH, GOOD, "Connection: close"))
        self.assertEqual(answer.count(b"HTTP/1.1 200"), 2)
        # A body where none belongs is not taken for the next request.
        answer = server.raw(b"GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 37\r\n\r\n"
                            b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(answer.count(b"HTTP/1.1"), 1)
        self.assertIn(b" 200 ", answer[:20])


    def test_ids_outside_of_the_vocabulary(self):
        server = self.start()
        for path, asked in ASKED.items():
            for field in ({"stop_token_ids": [999999]}, {"logit_bias": {"999999": 1}}):
                status, answer = server.post(path, json.dumps({**asked, **field}).encode())
                self.assertEqual(status, 400)
                self.assertIn("token ids in [0, ", answer["error"]["message"])
        self.check_alive(server)

    def test_a_client_that_closes_its_half_is_answered(self):
        server = self.start()
        for path, stream in itertools.product((PATH, CHAT), (False, True)):
            asked = {**ASKED[path], "max_tokens": 400, "ignore_eos": True, "stream": stream}
            with server.connect() as connection:
                connection.sendall(post_bytes(path, json.dumps(asked).encode()))
                connection.shutdown(socket.SHUT_WR)
                answer = receive_all(connection)
            heads = [line for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.1 ")]
            self.assertEqual(heads[-1], b"HTTP/1.1 200 OK", (path, stream))
            self.assertLessEqual(set(heads[:-1]), {b"HTTP/1.1 100 Continue"})
            self.assertIn(b"data: [DONE]" if stream else b'"finish_reason":"length"', answer)
        self.check_alive(server)

    def test_a_body_that_ends_too_early_is_answered(self):
        server = self.start()
        for path, good in GOODS.items():
            with server.connect() as connection:
                connection.sendall(post_bytes(path, good)[:-5])
                connection.shutdown(socket.SHUT_WR)
                answer = receive_all(connection)
            self.assertEqual(status_of(answer), 400, (path, answer))
            self.assertIn(b"expected a whole body, got a part of it", answer)
        self.check_alive(server)

    def test_heads_without_one_host_or_without_an_end(self):
        server = self.start()
        for hosts, status in ((b"", 400), (b"Host: a\r\nHost: b\r\n", 400), (b"Host: a\r\n", 200)):
            head = b"GET /health HTTP/1.1\r\nConnection: close\r\n" + hosts + b"\r\n"
            self.assertEqual(status_of(server.raw(head)), status, hosts)
        self.assertEqual(status_of(server.raw(b"GET /health HTTP/1.0\r\n\r\n")), 200)
        for lines, status in ((1000, 200), (100_000, 431)):
            head = b"GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            head += b"".join(b"A%d: b\r\n" % i for i in range(lines)) + b"\r\n"
            self.assertEqual(status_of(server.raw(head)), status, lines)

    def test_a_key_twice_is_refused(self):
        server = self.start()
        for body in (b'{"prompt": "12:", "temperature": 0, "temperature": 1}',
                     b'{"prompt": "12:", "logit_bias": {"5": 1, "5": 2}}'):
            status, answer = server.post(PATH, body)
            self.assertEqual(status, 400)
            self.assertIn("each key once in an object, got ", answer["error"]["message"])


class Slow(Hostile):
    def test_requests_that_do_not_arrive(self):
        server = self.start("--read-seconds", "0.5", "--idle-seconds", "0.5")
        for path, good in GOODS.items():
            whole = post_bytes(path, good)
            for part in (b"", whole[:10], whole[:-5]):  # nothing, half a head, half a body: all are closed
                answer = server.raw(part)
                self.assertTrue(answer == b"" or status_of(answer) == 408, answer)
        with server.connect() as connection:  # a byte now and then does not renew the limit
            stop = threading.Event()

            def drip():
                try:
                    connection.sendall(b"GET /health HTTP/1.1\r\n")
                    while not stop.wait(0.05):
                        connection.sendall(b"A")
                except OSError:
                    pass
            dripping = threading.Thread(target=drip)
            dripping.start()
            receive_all(connection)
            stop.set()
            dripping.join()
        self.check_alive(server)

    def test_a_reader_that_stops_is_cut_off_and_others_are_served(self):
        server = self.start("--buffer-tokens", "1000", "--write-seconds", "600")
        for number, path in enumerate((PATH, CHAT), 1):
            with server.connect(receive_buffer=4096) as connection:
                connection.sendall(post_bytes(path, json.dumps({**ENDLESS[path], "n": 2}).encode()))
                self.check_alive(server)
                server.wait_for("collimate_completions_cancelled_total", 2 * number)
        self.check_alive(server)

    def test_a_client_that_leaves_is_cancelled(self):
        server = self.start()
        for number, path in enumerate((PATH, CHAT)):
            stream = self.begin_endless(server, path)
            stream.close()
            server.wait_for("collimate_completions_in_flight", 0)
            self.assertEqual(server.metric("collimate_completions_cancelled_total"), 3 * number + 1)
            for count, unread in enumerate((b"", b"\r\nGET /health HTTP/1.1\r\n\r\n"), 2):
                with server.connect() as whole:  # nothing was sent to this one yet
                    whole.sendall(post_bytes(path, json.dumps({**ENDLESS[path], "stream": False}).encode()))
                    server.wait_for("collimate_completions_in_flight", 1)
                    whole.sendall(unread)
                server.wait_for("collimate_completions_in_flight", 0)
                self.assertEqual(server.metric("collimate_completions_cancelled_total"), 3 * number + count)
                self.assertEqual(server.metric("collimate_http_clients_gone_total"), 3 * number + count)
        self.check_alive(server)


class Many(Hostile):
    def test_a_hundred_requests_at_once(self):
        server = self.start()
        for path, prompt in ASKED.items():
            asked = {**prompt, "seed": 1, "max_tokens": 20}
            expected = server.post(path, asked)[1]["choices"]
            with concurrent.futures.ThreadPoolExecutor(100) as pool:
                answers = list(pool.map(lambda _: server.post(path, asked), range(100)))
            got = [answer["choices"] if status == 200 else status for status, answer in answers]
            self.assertEqual(got, [expected] * 100)

    def test_a_hundred_connections_that_say_nothing(self):
        server = self.start("--max-connections", "20", "--idle-seconds", "600")
        silent = [server.connect() for _ in range(100)]
        self.check_alive(server)  # idle ones make room
        for connection in silent:
            connection.close()
        self.check_alive(server)

    def test_too_many_requests_are_told_so(self):
        server = self.start("--max-requests", "3")
        running = [self.begin_endless(server, path) for path in (CHAT, CHAT, PATH)]
        for path, good in GOODS.items():
            status, answer = server.post(path, good)
            self.assertEqual((status, answer["error"]["code"]), (429, "rate_limit_exceeded"))
        self.assertIn(b"Retry-After", server.raw(post_bytes(PATH, GOOD, "Connection: close")))
        self.assertEqual(server.post(PATH, {"prompt": "12:", "n": 4})[0], 400)  # which would never have a place
        running.pop().close()
        server.wait_for("collimate_completions_in_flight", 2)
        self.assertEqual(server.post(PATH, GOOD)[0], 200)


class Stall(Hostile):
    """One request has the only slot for longer than another one may wait."""

    def test_a_request_that_gets_nothing_is_told_so(self):
        server = self.start("--stall-seconds", "0.2", "--max-batch-sequences", "1", "--buffer-tokens", "100000",
                            "--write-seconds", "600")
        self.begin_endless(server, seed=5)
        status, answer = server.post(PATH, GOOD)
        self.assertEqual((status, answer["error"]["type"]), (504, "server_error"))
        self.assertIn("expected a token of the engine", answer["error"]["message"])
        status, text = server.post(CHAT, {**ASKED[CHAT], "stream": True})  # which has been promised a stream
        self.assertEqual(status, 200)
        self.assertIn("expected a token of the engine", text)
        self.assertNotIn("[DONE]", text)
        # Draws equal to those that run have to wait until they are done, and are not begun before.
        for stream in (False, True):
            status, answer = server.post(PATH, {**ASKED[PATH], "seed": 5, "stream": stream})
            self.assertEqual(status, 504)
            self.assertIn("expected a place in the engine", answer["error"]["message"])
        server.wait_for("collimate_completions_cancelled_total", 4)
        self.assertEqual(server.metric("collimate_completions_in_flight"), 1)


class End(Hostile):
    def test_what_runs_is_finished(self):
        server = self.start("--shutdown-seconds", "600")
        connection = self.begin_endless(server, max_tokens=3000)
        ending = threading.Thread(target=lambda: setattr(self, "code", server.close()))
        ending.start()
        text = receive_all(connection).decode()
        ending.join()
        self.assertEqual(self.code, 0, server.errors())
        self.assertTrue(text.rstrip("0\r\n").endswith("data: [DONE]"), text[-200:])
        ids = [token for part in re.findall(r'"token_ids":\[([\d,]*)\]', text) for token in part.split(",") if token]
        self.assertEqual(len(ids), 3000)
        with self.assertRaises(ConnectionRefusedError):
            server.connect()

    def test_at_the_limit_the_rest_is_cut_off(self):
        server = self.start("--shutdown-seconds", "0.1")
        connection = self.begin_endless(server)
        ending = threading.Thread(target=lambda: setattr(self, "code", server.close()))
        ending.start()
        text = receive_all(connection).decode()
        ending.join()
        self.assertEqual(self.code, 3, server.errors())
        self.assertTrue('"code":"shutting_down"' in text, text[-200:])
        self.assertFalse("[DONE]" in text, text[-200:])
        self.assertIn("1 cut off", server.errors())


if __name__ == "__main__":
    unittest.main()

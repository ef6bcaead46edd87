"""Clients of a server that answers OpenAI's completions: each sends its requests one after another over one connection
and reads the stream. Reads a job as JSON on stdin and prints one line of JSON:

    {"port": 8000, "bodies": [[request of client 0, …], [request of client 1, …], …], "tokens": 128}

Every request asks for a stream; a completion must end by its length. Printed: requests and their rate, seconds to the
first token and between tokens (median and 99th percentile over all requests), pieces of text per request (a server may
put several tokens into one), and the share of one core that this process took, which the server went without.
"""

import asyncio
import json
import re
import sys
import time

OK = b"HTTP/1.1 200"
END = b"\r\n0\r\n\r\n"  # of a body in chunks
EVENT = re.compile(rb"^data: (.*?)\r?$", re.MULTILINE)


def encoded(body):
    data = json.dumps(body).encode()
    return (b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: "
            + str(len(data)).encode() + b"\r\n\r\n" + data)


class Client(asyncio.Protocol):
    """While the clock runs it only notes what arrived when; `answers` are read afterwards."""

    def __init__(self, port, requests):
        self.port, self.waiting = port, requests[::-1]
        self.done = asyncio.get_running_loop().create_future()
        self.answers = []  # [(time of sending, [(time, bytes), …]), …]
        self.pieces, self.sent, self.tail, self.lost = None, 0.0, b"", 0

    def connection_made(self, transport):
        self.transport = transport
        if self.pieces is None:
            self.send()
        else:
            transport.write(self.waiting[-1])  # the server had closed the connection as the request was on its way

    def send(self):
        self.pieces, self.tail, self.sent = [], b"", time.perf_counter()
        self.transport.write(self.waiting[-1])

    def data_received(self, data):
        self.pieces.append((time.perf_counter(), data))
        if not self.pieces[0][1].startswith(OK):
            if len(self.pieces) == 1:
                asyncio.get_running_loop().call_later(0.2, self.refused)  # by then all that it says is here
            return
        self.tail = (self.tail + data)[-len(END):]
        if self.tail == END:
            self.finish()

    def refused(self):
        if not self.done.done():
            self.done.set_exception(ValueError(f"the server answered {b''.join(d for _, d in self.pieces)[:600]!r}"))

    def finish(self):
        self.lost = 0
        self.answers.append((self.sent, self.pieces))
        self.waiting.pop()
        self.pieces = None
        if self.waiting:
            self.send()
        else:
            self.done.set_result(None)
            self.transport.close()

    def connection_lost(self, error):
        if self.done.done() or (self.pieces and not self.pieces[0][1].startswith(OK)):
            return
        self.lost += 1
        if self.pieces or self.lost > 3:
            what = b"".join(data for _, data in self.pieces or [])[-300:]
            self.done.set_exception(ConnectionError(f"the server closed the connection after {what!r}"))
        else:
            asyncio.get_running_loop().create_task(self.connect())

    async def connect(self):
        try:
            await asyncio.get_running_loop().create_connection(lambda: self, "127.0.0.1", self.port)
        except OSError as error:
            self.done.set_exception(error)


def text_times(answer):
    """When each piece of text had arrived. ValueError when the answer is not a completion that ended by its length."""
    sent, pieces = answer
    ends, total = [], 0
    for when, data in pieces:
        total += len(data)
        ends.append((total, when))
    raw = b"".join(data for _, data in pieces)
    times, reason, at = [], None, 0
    for event in EVENT.finditer(raw):
        if event[1] == b"[DONE]":
            continue
        choices = json.loads(event[1]).get("choices")
        if not choices:
            continue
        reason = choices[0].get("finish_reason") or reason
        while ends[at][0] < event.end():
            at += 1
        if choices[0].get("text"):
            times.append(ends[at][1])
    if reason != "length" or not times:
        raise ValueError(f"a completion of {len(times)} pieces ended by {reason!r}, not by its length")
    return times


def percentile(values, share):
    """The least value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-len(ordered) * share // 100) - 1)]


def summary(answers, wall, cpu, tokens):
    first, gaps, pieces = [], [], []
    for answer in answers:
        times = text_times(answer)
        first.append(times[0] - answer[0])
        gaps += [after - before for before, after in zip(times, times[1:])]
        pieces.append(len(times))
    return {"requests": len(answers), "wall": wall, "requests_s": len(answers) / wall,
            "tok_s": len(answers) * tokens / wall, "first_p50": percentile(first, 50),
            "first_p99": percentile(first, 99), "between_p50": percentile(gaps, 50) if gaps else None,
            "between_p99": percentile(gaps, 99) if gaps else None, "pieces": percentile(pieces, 50),
            "client_cpu": cpu / wall}


async def load(job):
    clients = [Client(job["port"], [encoded(body) for body in bodies]) for bodies in job["bodies"]]
    begin, used = time.perf_counter(), time.process_time()
    await asyncio.gather(*(client.connect() for client in clients))
    await asyncio.gather(*(client.done for client in clients))
    wall, cpu = time.perf_counter() - begin, time.process_time() - used
    return summary([answer for client in clients for answer in client.answers], wall, cpu, job["tokens"])


if __name__ == "__main__":
    try:
        print(json.dumps(asyncio.run(load(json.load(sys.stdin)))))
    except (OSError, ValueError) as error:
        sys.exit(f"[bench/peers] {error}")

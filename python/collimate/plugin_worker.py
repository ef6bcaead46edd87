"""A plugin in Python, for the program that loads it: python -m collimate.plugin_worker FILE.py

Frames as those of reward_worker, and with buffers of 32-bit floats. The first answer tells the flows and losses of the
file. {"flow": NAME, "config": …} traces a flow: it asks {"page": …} as often as it makes models, and gets
{"value": …} or, where the program refuses, {"stop": true}, which ends the trace and is answered by {"stopped": true};
else the last frame has the graph, or what went wrong. {"loss": NAME, …} with quantities and columns is answered by the
loss and its gradients. After {"make": NAME, …} the
process is that module's, and all else is for it. What the file prints goes to stderr.
"""

import json
import os
import struct
import sys

from collimate import flows, losses, modules
from collimate.errors import InputError
from collimate.reward_worker import Frames, encoded, failure_of, load_module, own_frames


class Stopped(BaseException):
    """The program has refused what the flow asked for, and says so itself."""


class ArrayFrames(Frames):
    """The wire form of host/frame_socket.h, with buffers."""

    def receive(self):
        head = self.source.read(16)
        if len(head) < 16:
            return None, []
        self.magic, count, size = struct.unpack("<IIQ", head)
        sizes = struct.unpack(f"<{count}Q", self.source.read(8 * count))
        header = self.source.read(size)
        return json.loads(header), [self.source.read(one) for one in sizes]

    def send(self, header, buffers=()):
        body = encoded(header)
        sizes = struct.pack(f"<{len(buffers)}Q", *map(len, buffers))
        self.sink.write(struct.pack("<IIQ", self.magic, len(buffers), len(body)) + sizes + body + b"".join(buffers))
        self.sink.flush()


def load_torch():
    """PyTorch on one thread, where the file has losses."""
    if not losses.LOSSES:
        return None
    try:
        import torch
    except ImportError as error:
        raise InputError(f"[collimate.loss] expected PyTorch in {sys.executable}, which differentiates losses, got "
                         f"{error}; try COLLIMATE_PYTHON=PROGRAM, a Python that has it") from error
    torch.set_num_threads(1)
    return torch


def failure(error):
    """{"refused": text} of an error that says all, else {"error", "trace"} with the user's own lines."""
    if isinstance(error, InputError):
        return {"refused": str(error)}
    return failure_of(error)


class Asking:
    """Asks the program what a page would answer, until it refuses: from then on every question ends the trace, also in
    a flow that has caught Stopped."""

    def __init__(self, frames):
        self.frames, self.stopped = frames, False

    def __call__(self, question):
        if not self.stopped:
            self.frames.send(question)
            answer, _ = self.frames.receive()
            if answer is None:
                os._exit(0)  # nobody is there any more
            self.stopped = "stop" in answer
        if self.stopped:
            raise Stopped
        return answer["value"]


def trace(frames, request):
    ask = Asking(frames)
    try:
        traced = flows.FLOWS[request["flow"]].trace(request["config"], ask)
    except BaseException:
        if not ask.stopped:
            raise
    frames.send({"stopped": True} if ask.stopped else traced)


def answer(frames, torch, request, buffers):
    if "make" in request:
        made, told = modules.MODULES[request["make"]]
        modules.CURRENT = modules.Made(made(**request["parameters"]), told)
        frames.send({})
    elif modules.CURRENT is not None:
        frames.send(*modules.CURRENT.answer(request, buffers))
    elif "loss" in request:
        frames.send(*losses.LOSSES[request["loss"]].answer(torch, request, buffers))
    else:
        trace(frames, request)


def main(path):
    plain = own_frames()
    frames = ArrayFrames(plain.source, plain.sink)
    frames.receive()
    try:
        load_module(path, "collimate_user_plugin")
        torch = load_torch()
    except BaseException as error:
        frames.send(failure(error))
        return
    frames.send({"flows": [flow.told for flow in flows.FLOWS.values()],
                 "losses": [loss.told for loss in losses.LOSSES.values()],
                 "modules": [told for _, told in modules.MODULES.values()]})
    while True:
        request, buffers = frames.receive()
        if request is None:
            return
        try:
            answer(frames, torch, request, buffers)
        except Exception as error:
            frames.send(failure(error))


if __name__ == "__main__":
    main(sys.argv[1])

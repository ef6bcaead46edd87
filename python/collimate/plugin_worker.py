"""A plugin in Python, for the program that loads it: python -m collimate.plugin_worker FILE.py

Frames as those of reward_worker. The first answer tells the flows of the file. {"flow": NAME, "config": …} traces
one: it asks {"page": …} as often as it makes models, and gets {"value": …} or, where the program refuses,
{"stop": true}; the last frame has the graph, or what went wrong. What the file prints goes to stderr.
"""

import importlib.util
import os
import sys
import traceback

from collimate import flows
from collimate.errors import InputError
from collimate.reward_worker import own_frames


class Stopped(BaseException):
    """The program has refused what the flow asked for, and says so itself."""


def load_file(path):
    spec = importlib.util.spec_from_file_location("collimate_user_plugin", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)


def failure(error):
    """{"refused": text} of an error that says all, else {"error", "trace"} with the user's own lines."""
    if isinstance(error, InputError):
        return {"refused": str(error)}
    ours = (__file__, flows.__file__)
    lines = traceback.format_list(f for f in traceback.extract_tb(error.__traceback__)
                                  if f.filename not in ours and not f.filename.startswith("<frozen "))
    if isinstance(error, SyntaxError):
        lines += traceback.format_exception_only(error)[:-1]
    return {"error": traceback.format_exception_only(error)[-1].strip(), "trace": "".join(["\n", *lines]).rstrip()}


def asking(frames):
    def ask(question):
        frames.send(question)
        answer = frames.receive()
        if answer is None or "stop" in answer:
            raise Stopped
        return answer["value"]

    return ask


def main(path):
    frames = own_frames()
    frames.receive()
    try:
        load_file(path)
    except BaseException as error:
        frames.send(failure(error))
        return
    frames.send({"flows": [flow.told for flow in flows.FLOWS.values()]})
    while (request := frames.receive()) is not None:
        try:
            frames.send(flows.FLOWS[request["flow"]].trace(request["config"], asking(frames)))
        except Stopped:
            continue
        except Exception as error:
            frames.send(failure(error))


if __name__ == "__main__":
    main(sys.argv[1])

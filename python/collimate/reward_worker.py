"""Runs a user's reward function for collimate: `python -m collimate.reward_worker FILE.py FUNCTION`.

Frames come on the stdin and leave on the stdout that we were started with: the user's code reads an empty stdin, and
what it prints goes to stderr. The function is TRL's `score(prompts, completions, **columns) -> list[float | None]` or,
where its first parameter is called data_source, verl's `compute_score(data_source, solution_str, ground_truth,
extra_info) -> float`. In place of a number either may give {"score": number, "steps": [(end, reward), ...]}: what each
step of the completion adds, where a step ends at completion[:end]; what the steps leave of the score belongs to the
completion's end. {"score": number, "answer": text} says what the completion answers (verl's "pred" does too), by which
a majority votes. None: the function does not judge the sample.
"""

import importlib.util
import inspect
import json
import math
import os
import struct
import sys
import traceback

OURS = ("completions", "finished", "prompts")  # by these names TRL's shape gets no columns of the data


def encoded(value):
    """JSON in UTF-8; errors may hold lone surrogates. ValueError for numbers that JSON lacks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


class Frames:
    """The wire form of host/frame_socket.h without buffers; the peer speaks first and so names the magic number."""

    def __init__(self, source, sink):
        self.source, self.sink, self.magic = source, sink, 0

    def receive(self):
        head = self.source.read(16)
        if len(head) < 16:
            return None
        self.magic, buffers, size = struct.unpack("<IIQ", head)
        if buffers:
            raise ValueError(f"expected a frame without buffers, got {buffers}")
        return json.loads(self.source.read(size))

    def send(self, header):
        body = encoded(header)
        self.sink.write(struct.pack("<IIQ", self.magic, 0, len(body)) + body)
        self.sink.flush()


class NotThere(Exception):
    """Says what is missing in words that need no name of an exception."""


def load_module(path, name):
    """Runs a file as the module of that name; it may import what lies beside it."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(module)
    return module


def load(path, name, kind="function"):
    made = imported(path, name, kind)
    if kind == "function" and inspect.isclass(made) and callable(getattr(made, "step", None)):
        raise NotThere(f'{name}, the class of an environment; try {{gym: "{path}:{name}"}}, which answers turns')
    return made


def imported(path, name, kind):
    if not os.path.isfile(path):
        raise NotThere(f"no file {path}")
    module = load_module(path, "collimate_user_reward")
    if hasattr(module, name) and not callable(getattr(module, name)):
        raise NotThere(f"{name}, which is no {kind}")
    if not hasattr(module, name):
        known = [k for k, v in vars(module).items() if callable(v) and not k.startswith("_")]
        own = [k for k in known if getattr(getattr(module, k), "__module__", "") == module.__name__]
        remedy = f"; try {path}:{own[0]}" if len(own) == 1 else ""
        raise NotThere(f"no {kind} {name}; it defines {', '.join(known) or 'none'}{remedy}")
    return getattr(module, name)


def result(value, completion):
    try:
        return checked(value, completion)
    except Exception as error:
        return failed(error)


def failed(error):
    name, text = type(error).__name__, str(error)
    if isinstance(error, TypeError) and text.startswith("string indices must be integers"):  # TRL's are conversations
        text += '; try completion in the place of completion[0]["content"], as prompts and completions are texts here'
    return {"value": None, "error": f"{name}: {text}" if text else name, "trace": trace(error)}


def trace(error):
    """The user's own lines that led to the error, as Python shows them."""
    return "".join(own_lines(error) + traceback.format_exception_only(error))


def own_lines(error):
    ours = os.path.dirname(__file__)
    return traceback.format_list(f for f in traceback.extract_tb(error.__traceback__)
                                 if os.path.dirname(f.filename) != ours and not f.filename.startswith("<frozen "))


def failure_of(error):
    """{"error", "trace"} of what the user's file has raised, with its own lines."""
    lines = own_lines(error)
    if isinstance(error, SyntaxError):
        lines += traceback.format_exception_only(error)[:-1]
    told = str(error) if isinstance(error, NotThere) else traceback.format_exception_only(error)[-1].strip()
    return {"error": told, "trace": "".join(["\n", *lines]).rstrip()}


def checked(value, completion):
    steps = value.get("steps") if isinstance(value, dict) else None
    steps = [] if steps is None else [(int(end), float(reward)) for end, reward in steps]
    answer = read_out(value) if isinstance(value, dict) else {}
    if isinstance(value, dict) and "score" not in value:
        keys = ", ".join(map(repr, value)) or "no key"
        raise TypeError(f'a reward that is a dict with {keys}; try {{"score": number}}, or a number in its place')
    value = value["score"] if isinstance(value, dict) else value
    if value is None and not steps:
        return {"value": None, "error": ""}
    try:
        value = float(value)
    except (TypeError, ValueError):
        return {"value": None, "error": f"{value!r:.40} in the place of a number"}
    if not math.isfinite(value):
        return {"value": None, "error": f"the function returned {value}"}
    before = -1
    for number, (end, reward) in enumerate(steps):
        if not math.isfinite(reward):
            return {"value": None, "error": f"reward of step {number} is {reward}"}
        if not before < end <= len(completion):
            expected = f"{before + 1} to {len(completion)}" if before < len(completion) else "no step behind the last"
            return {"value": None, "error": f"step {number} ends at {end}, expected {expected}"}
        before = end
    steps = [(len(completion[:end].encode()), reward) for end, reward in steps]
    return {"value": value, "error": "", "steps": steps, **answer}


def read_out(value):
    """{"answer": text} where the function says what the completion answers."""
    answer = value.get("answer", value.get("pred"))
    return {} if answer is None else {"answer": str(answer)}


def counted(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


def accepts(function, name):
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


SHAPES = ("score(prompts, completions, **columns), which gives a list, as TRL calls it, or "
          "score(data_source, solution_str, ground_truth, extra_info), as verl does")


def matched(function, *arguments, **columns):
    """Nothing, or a TypeError that says how functions are called here."""
    signature = inspect.signature(function)
    try:
        signature.bind(*arguments, **columns)
    except TypeError as error:
        name = getattr(function, "__name__", "the function")
        absent = [n for n, p in signature.parameters.items() if p.default is p.empty and n not in columns
                  and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        if absent and "completions" in signature.parameters:
            raise TypeError(f"{name}{signature} asks for {', '.join(absent)}, which the data does not have") from None
        raise TypeError(f"{name}{signature} cannot be called: {error}; expected {SHAPES}") from None


def call_batch(function, samples):
    """TRL's shape: columns of the data set by name and `finished` (not cut off), one list entry per sample."""
    examples = [s["example"] or {} for s in samples]
    names = {name for e in examples for name in e} - {"prompt", "completion"}
    columns = {name: [e.get(name) for e in examples] for name in sorted(names)}
    columns["finished"] = [s.get("finished", True) for s in samples]
    columns = {k: v for k, v in columns.items() if accepts(function, k)}
    prompts, completions = [s["prompt"] for s in samples], [s["completion"] for s in samples]
    matched(function, prompts=prompts, completions=completions, **columns)
    values = listed(function(prompts=prompts, completions=completions, **columns), len(samples))
    if len(values) != len(samples):  # asked one by one, they would be rewards of other comparisons
        error = f"the function returned {counted(len(values), 'reward')} for {counted(len(samples), 'sample')}"
        return [{"value": None, "error": error} for _ in samples]
    return [result(v, c) for v, c in zip(values, completions)]


def awaited(value):
    """The value, or a TypeError for what an async function returns."""
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("the function is async, and nothing awaits it; try def in the place of async def, with "
                        "asyncio.run for what it awaits")
    return value


def listed(value, count):
    if isinstance(awaited(value), dict):
        raise TypeError(f"the function returned a dict, expected a list of {counted(count, 'reward')}, one for each "
                        "completion")
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise TypeError(f"the function returned {value!r:.40}, expected a list of {counted(count, 'reward')}, one for "
                        "each completion")
    return list(value)


def call_each(function, samples):
    """verl's shape: one sample a call."""
    out = []
    for s in samples:
        e = s["example"] or {}
        try:
            truth, extra = e.get("ground_truth"), e.get("extra_info")
            matched(function, e.get("data_source"), s["completion"], truth, extra)
            value = awaited(function(e.get("data_source"), s["completion"], truth, extra))
            out.append(result(value, s["completion"]))
        except Exception as error:
            out.append(failed(error))
    return out


def score(function, call, samples):
    """Results of one call and no trace; when it raises, those of one call per sample, and the first call's trace."""
    try:
        return call(function, samples), ""
    except Exception as error:
        if len(samples) == 1:
            return [failed(error)], ""
        return [score(function, call, [s])[0][0] for s in samples], trace(error)


def shape_of(function):
    """(call_batch or call_each, columns of the data by whose names the function gets something else)"""
    parameters = list(inspect.signature(function).parameters)
    call = call_each if parameters[:1] == ["data_source"] else call_batch
    return call, [column for column in OURS if call is call_batch and accepts(function, column)]


def answer(function, call, request):
    """Answers a request that rlhf/reward/python_answer.h makes."""
    results, batch_trace = score(function, call, request["samples"])
    return {"results": results, "batch_trace": batch_trace}


class Remembered:
    """A function that keeps the first exception it raised, for a caller in the same process."""

    def __init__(self, function):
        self.__wrapped__, self.raised = function, None  # by this name inspect finds its parameters

    def __call__(self, *arguments, **columns):
        try:
            return self.__wrapped__(*arguments, **columns)
        except Exception as error:
            self.raised = self.raised or error
            raise


def own_frames():
    """Frames on copies of stdin and stdout; in their places the user's code finds /dev/null and stderr."""
    frames = Frames(os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb"))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # stderr is no terminal: a line would wait for thousands of others
    return frames


def main(path, name):
    frames = own_frames()
    frames.receive()
    try:
        function = load(path, name)
    except BaseException as error:
        frames.send(failure_of(error))
        return
    call, reserved = shape_of(function)
    frames.send({"reserved": reserved, "together": call is call_batch})
    while (request := frames.receive()) is not None:
        frames.send(answer(function, call, request))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

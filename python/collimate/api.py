"""train, check, generate and evaluate: the verbs of the command line as functions."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

from collimate.errors import Error, InputError, RunError, StoppedError
from collimate.library import PROGRAM, load
from collimate.memory_rewards import MemoryReward, Reward, split
from collimate.rows import Rows, records, restored_unless_removed, set_aside, write_rows

native = load()

Path = Union[str, "os.PathLike[str]"]
Config = Union[Path, Mapping[str, Any]]  # a YAML file, or what would stand in it
Data = Union[Rows, Mapping[str, Rows]]  # what to train on, or {"train": rows, "eval": rows}
Metrics = dict[str, float]
Callback = Callable[[Metrics], object]  # gets each line of metrics.jsonl; returns STOP to end the run


class _Stop:
    def __repr__(self) -> str:
        return "collimate.STOP"


STOP = _Stop()


@dataclasses.dataclass(frozen=True)
class TrainResult:
    output: pathlib.Path  # the run's directory
    iterations: int  # of the run and their time, in whatever calls
    seconds: float
    first_evaluation: Metrics  # empty without held-out data
    last_evaluation: Metrics
    summary: dict[str, Any]  # summary.json

    @property
    def model(self) -> pathlib.Path:
        """The trained model, a Hugging Face directory."""
        return self.output / "model"

    @property
    def diverged(self) -> str:
        """How the loss has diverged by the end, "" if it has not: exit code 5 of the command line."""
        return self.summary["diverged"]

    @property
    def report(self) -> pathlib.Path:
        return self.output / "report.html"

    @property
    def metrics(self) -> list[Metrics]:
        """One dict for each iteration, as callbacks got them."""
        return [_metrics(line) for line in (self.output / "metrics.jsonl").read_text().splitlines()]


def train(config: Config, data: Data | None = None, rewards: Iterable[Reward] | Reward | None = None,
          callbacks: Sequence[Callback] = (), *, output: Path | None = None, resume: str = "auto",
          overwrite: bool = False, download: bool = False,
          overrides: Mapping[str, Any] | None = None) -> TrainResult:
    """Trains what the config says, as `collimate train` does, with data and rewards in memory in the place of its own.

    Rows are kept in output/rows, so that the run can go on: the same call with the same output does. Without an output
    it is a new directory below the system's temporary one, which stays. With `overwrite` the run that output holds is
    removed, its rows and its model too, and this one begins anew; a call that is refused removes nothing. `overrides`
    are {"run.seed": 2} and win over the config. With `download` a model that is named as on a hub and is not in Hugging
    Face's local cache is downloaded first. Ctrl-C saves, stops and raises KeyboardInterrupt; once more stops at
    once. Rewards are tried on the first row before the run. One that raises ends the run, unless its on_error says
    otherwise: RunError, InputError in the trial, caused by what was raised. What a callback raises comes out of here
    after the run was saved. InputError, with nothing trained, for wrong input. One call at a time in a process.
    """
    path = pathlib.Path(tempfile.mkdtemp(prefix="collimate-") if output is None else output)
    if output is None:
        print(f"output: {path}", file=sys.stderr)
    request, functions = _request(config, rewards, overrides, download)
    request.update(output=str(path), resume=os.fspath(resume), overwrite=overwrite,
                   worker_command=[PROGRAM, "worker"])
    listeners = _Callbacks(callbacks)
    with _gone_if_refused(path, made=output is None), restored_unless_removed(path):
        files = _add_data(request, data, path, kept=not overwrite and _has_begun(path), aside=overwrite)
        with _causes(functions), _named_rows(files):
            outcome = json.loads(native.train(json.dumps(request), [f.native() for f in functions], listeners))
    if listeners.raised:
        raise listeners.raised
    if "signal" in outcome:
        _pass_on(outcome["signal"], outcome["message"])
    for evaluation in ("first_evaluation", "last_evaluation"):
        outcome[evaluation] = outcome[evaluation] or {}
    return TrainResult(output=path, **outcome)


@contextlib.contextmanager
def _gone_if_refused(path: pathlib.Path, made: bool) -> Iterator[None]:
    """A directory that was made for a call goes again where the call is refused."""
    try:
        yield
    except InputError:
        if made:
            shutil.rmtree(path, ignore_errors=True)
        raise


def check(config: Config, data: Data | None = None, rewards: Iterable[Reward] | Reward | None = None, *,
          download: bool = False, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Gives what the config would train, as `collimate check --json` says it: the batch arithmetic, what data looks
    like and what rewards give, as texts in "notes". "problems" is empty where the run could begin. With `download` it
    downloads models as `train` does."""
    request, functions = _request(config, rewards, overrides, download)
    with tempfile.TemporaryDirectory(prefix="collimate-") as directory:
        files = _add_data(request, data, pathlib.Path(directory), kept=False)
        with _named_rows(files):
            found = json.loads(native.check(json.dumps(request), [function.native() for function in functions]))
        return {**found, **{key: _as_argument(_by_row(found[key], files)) for key in ("notes", "problems")}}


def _schema_as_text(sampling: Mapping[str, Any]) -> dict[str, Any]:
    schema = sampling.get("json_schema")
    return {**sampling, "json_schema": json.dumps(schema)} if isinstance(schema, Mapping) else dict(sampling)


def generate(model: Path, prompts: str | Iterable[Any], *, max_tokens: int = 128, n: int = 1, seed: int = 0,
             logprobs: bool = False, long_rows: str = "stop", bad_rows: str = "stop", download: bool = False,
             **sampling: Any) -> list[dict[str, Any]]:
    """Completes prompts: texts, conversations (lists of {"role", "content"}) or rows with a prompt. For each, in order,
    n dicts of prompt, completion, token_ids and finish, and logprobs where asked. `long_rows` ("stop", "drop" or
    "truncate") says what happens to prompts that are longer than the model can read, `bad_rows` ("stop" or "drop") to
    those that are none; what is left out is counted on stderr and is not in the list. With `download` a model that is
    named as on a hub and is not in Hugging Face's local cache is downloaded first. `sampling` are temperature, top_p
    and the other keys of `collimate help rollout`, compute, latent_cache, chat_template, chat_template_kwargs,
    speculation, draft_model; json_schema may be a dict. num_beams (with length_penalty and early_stopping, as in
    transformers) searches in place of drawing: the n best of each prompt, with their score. Ctrl-C stops it. One call
    at a time in a process."""
    given = [prompts] if isinstance(prompts, (str, Mapping)) else prompts
    rows = (row if isinstance(row, Mapping) else {"prompt": row} for row in records(given))
    with tempfile.TemporaryDirectory(prefix="collimate-") as directory:
        file = pathlib.Path(directory) / "prompts.jsonl"
        write_rows(rows, "prompts", file, kept=False)
        request = {"model": os.fspath(model), "data": str(file), "max_tokens": max_tokens, "n": n, "seed": seed,
                   "logprobs": logprobs, "long_rows": long_rows, "bad_rows": bad_rows, "download": download,
                   **_schema_as_text(sampling)}
        with _named_rows({"prompts": file}):
            return _unless_stopped(json.loads(native.generate(json.dumps(request))))


def evaluate(models: Path | Sequence[Path], data: Rows | Path, rewards: Iterable[Reward] | Reward | None = None, *,
             measure: str | None = None, n: int = 1, examples: int = 0, max_tokens: int = 128, seed: int = 0,
             long_rows: str = "stop", bad_rows: str = "stop", compute: str = "float32", latent_cache: bool = False,
             chat_template: str = "auto", chat_template_kwargs: Mapping[str, Any] | None = None,
             download: bool = False, **sampling: Any) -> dict[str, Any]:
    """Measures models on data: the document of `collimate eval --json`. Completions that rewards judge, perplexity,
    pairs, choices, marked answers or steps, as the rows' columns say, or `measure`. Each model has "metrics", with
    value and standard_error of each; "differences" are of each model after the first from it. `long_rows`, `bad_rows`
    and `download` are those of generate(); what is left out is counted in each model's "left_out". `sampling` are
    temperature, top_p and the other keys of `collimate help evaluation`. Ctrl-C stops it. One call at a time in a
    process."""
    given = [models] if isinstance(models, (str, os.PathLike)) else list(models)
    entries, functions = split(rewards) if rewards is not None else (None, [])
    with tempfile.TemporaryDirectory(prefix="collimate-") as directory:
        file = pathlib.Path(directory) / "data.jsonl"
        files = {"data": file}
        if isinstance(data, (str, os.PathLike)):
            file, files = pathlib.Path(data), {}
        else:
            write_rows(data, "data", file, kept=False)
        request = {"models": [os.fspath(model) for model in given], "data": str(file), "measure": measure,
                   "max_tokens": max_tokens, "seed": seed, "compute": compute, "latent_cache": latent_cache,
                   "long_rows": long_rows, "bad_rows": bad_rows, "download": download,
                   "chat_template": chat_template, "chat_template_kwargs": dict(chat_template_kwargs or {}),
                   "section": {**_schema_as_text(sampling), "samples_per_prompt": n, "examples": examples,
                               "reward": entries}}
        with _causes(functions), _named_rows(files):
            text = native.evaluate(json.dumps(request), [function.native() for function in functions])
        document = _unless_stopped(json.loads(text))
        for told in (left_out for model in document["models"] for left_out in model["left_out"]):
            told["rest"] = _by_row(told["rest"], files)
        return {**document, "data": _by_row(document["data"], files)}


_NAMES = 'dicts with these keys: {"prompt": row["YOURS"], "completion": row["YOURS"]}'


def _by_row(told: Any, files: Mapping[str, pathlib.Path]) -> Any:
    """A text, or a list of texts, in which rows in memory are called "data.train row 3", not by their file's line."""
    if isinstance(told, list):
        return [_by_row(one, files) for one in told]
    if isinstance(told, str):
        for key, file in files.items():
            name = re.escape(str(file))
            columns = rf"saying which is which: {{path: {name}, columns: .*}} in the place of the path"
            told = re.sub(columns, _NAMES, told)
            told = re.sub(rf"\[data {name}\] (.*) got an empty file", rf"[{key}] \1 got none", told)
            told = re.sub(name + r":(\d+)", rf"{key} row \1", told).replace(str(file), key)
    return told


@contextlib.contextmanager
def _named_rows(files: Mapping[str, pathlib.Path]) -> Iterator[None]:
    """Errors name rows in memory as the caller knows them."""
    try:
        yield
    except Error as error:
        error.args = tuple(_as_argument(_by_row(list(error.args), files)))
        raise


def _as_argument(told: list[Any]) -> list[Any]:
    """Messages name the argument in the place of the flag."""
    return [re.sub(r"(?<=[\[ ])--download(?= )", "download=True", one) if isinstance(one, str) else one
            for one in told]


@contextlib.contextmanager
def _causes(functions: Iterable[MemoryReward]) -> Iterator[None]:
    """An error of a reward comes from what its function raised."""
    try:
        yield
    except (InputError, RunError) as error:
        causes = (function.cause_of(error) for function in functions)
        raise error from next((cause for cause in causes if cause), None)


class _Callbacks:
    """Calls each with a line of metrics; 1 when one of them asks to stop, which ends the run, 2 when one raises, which
    is kept: the run can go on."""

    def __init__(self, callbacks: Sequence[Callback]):
        self.callbacks, self.raised = [callbacks] if callable(callbacks) else list(callbacks), None

    def __call__(self, line: str) -> int:
        try:
            return int(any([callback(_metrics(line)) is STOP for callback in self.callbacks]))
        except BaseException as error:
            self.raised = error
            return 2


def _metrics(line: str) -> Metrics:
    """A line of metrics.jsonl with the numbers that JSON lacks."""
    values = json.loads(line)
    for entry in values.pop("nonfinite", []):
        name, _, value = entry.rpartition("=")
        values[name] = float(value)
    return {name: math.nan if value is None else value for name, value in values.items()}


def _request(config: Config, rewards: Iterable[Reward] | Reward | None,
             overrides: Mapping[str, Any] | None, download: bool) -> tuple[dict[str, Any], list[MemoryReward]]:
    sets = [f"{key}={json.dumps(value)}" for key, value in (overrides or {}).items()]
    functions: list[MemoryReward] = []
    if download:
        sets.append("download=true")
    if rewards is not None:
        entries, functions = split(rewards)
        sets.append(f"reward={json.dumps(entries)}")
    values = dict(config) if isinstance(config, Mapping) else os.fspath(config)
    return {"config": values, "sets": sets}, functions


def _add_data(request: dict[str, Any], data: Data | None, directory: pathlib.Path, kept: bool,
              aside: bool = False) -> dict[str, pathlib.Path]:
    """Names the data's files in the request, after writing rows that are in memory below the directory; gives these.
    `aside`: copies of those that are there stay (rows.restored_unless_removed)."""
    written: dict[str, pathlib.Path] = {}
    if data is None:
        return written
    given = data if isinstance(data, Mapping) else {"train": data}
    if unknown := [name for name in given if name not in ("train", "eval")]:
        raise InputError(f"[data] expected a dict with train and eval, or rows, got one with {unknown[0]}; "
                         f"try {{'train': rows, 'eval': held_out_rows}}")
    for name, rows in given.items():
        key = f"data.{name}"
        file = pathlib.Path(directory) / "rows" / f"{name}.jsonl"
        if isinstance(rows, (str, os.PathLike)):
            file = pathlib.Path(rows)
        else:
            if aside:
                set_aside(file)
            write_rows(rows, key, file, kept)
            written[key] = file
        request["sets"].append(f"{key}={json.dumps(str(file))}")
    return written


def _has_begun(run: pathlib.Path) -> bool:
    """Has something come of a run there, which other rows would make another one?"""
    metrics = run / "metrics.jsonl"
    return (run / "checkpoints").exists() or metrics.exists() and metrics.stat().st_size > 0


def _unless_stopped(made: Any) -> Any:
    """Gives what a call made, or does what the process does on the signal that stopped it."""
    if isinstance(made, dict) and "signal" in made:
        _pass_on(made["signal"], made["message"])
    return made


def _pass_on(number: int, message: str) -> None:
    """Does what the process does on a signal that has stopped a run."""
    try:
        signal.raise_signal(number)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(message) from None
    raise StoppedError(message)

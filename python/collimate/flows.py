"""Flows in Python: a function runs once over handles, and what it calls becomes the graph of an iteration, in the text
that a recipe in C++ gives for the same calls. Nothing here needs more than the standard library.

    @collimate.flow(rows="prompts")
    def mine(page, prompts): ...
"""

from __future__ import annotations

import difflib
import json
from typing import Any, Callable, Dict, List, Optional, Sequence

from collimate import arguments
from collimate.errors import InputError

GRAPH_VERSION = 1
INPUTS = {"prompts": "prompts", "completions": "examples", "pairs": "pairs"}  # of rows: the graph's input


class Value:
    """A call gives this: the columns that it makes, and all that led to them."""

    def __init__(self, *names: str):
        self.names = list(dict.fromkeys(names))


def merge(*values: Value) -> Value:
    """All columns of several values, joined by row."""
    return Value(*(name for value in values for name in value.names))


class Trace:
    """The graph of the flow that is being traced; one at a time."""

    current: Optional["Trace"] = None

    def __init__(self, name: str):
        self.name = name
        self.models: Dict[str, List[dict]] = {}
        self.nodes: List[dict] = []
        self.links: List[dict] = []

    def __enter__(self) -> "Trace":
        Trace.current = self
        return self

    def __exit__(self, *_: Any) -> None:
        Trace.current = None

    def unique_id(self, stem: str) -> str:
        taken, number, unique = {node["id"] for node in self.nodes}, 2, stem
        while unique in taken:
            unique, number = f"{stem}.{number}", number + 1
        return unique

    def makers(self, values: Sequence[Value]) -> List[str]:
        names = [name for value in values for name in value.names]
        found = [node["id"] for name in names for node in self.nodes if name in node["outputs"]]
        return list(dict.fromkeys(found))

    def made_for(self, value: str) -> set:
        """Columns that a value carries: what its node makes, and all that led to it."""
        columns = set()
        for node in self.nodes:
            if value in node["outputs"]:
                functions = {spec["name"]: spec for spec in self.models[node["model"]]}
                columns.update(column.split(":")[0] for column in functions[node["function"]]["makes"])
                columns.update(*map(self.made_for, node["inputs"]))
        return columns

    def samples_of(self, trained: dict) -> str:
        """The node whose rows are the iteration's samples: of what is trained on, that which carries most of rewards,
        advantages and how completions ended, for it may be merged with what a model says of the samples."""
        found, makers = {"reward", "finish", "advantages"}, self.makers([Value(*trained["inputs"])])
        return max(reversed(makers), key=lambda maker: len(found & self.made_for(maker)), default="")

    def text(self, inputs: List[dict]) -> str:
        """Canonical: as graph::text writes it."""
        graph = {"version": GRAPH_VERSION, "name": self.name, "inputs": inputs, "nodes": self.nodes,
                 "links": self.links, "models": {name: {"functions": functions}
                                                 for name, functions in self.models.items()}}
        return json.dumps(graph, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def tracing(who: str) -> Trace:
    if Trace.current is None:
        raise InputError(f"[{who}] expected a call inside a flow, got one outside; try moving it into the function "
                         "that collimate.flow marks")
    return Trace.current


class Model:
    """A handle on a model of the flow: `policy("generate", prompts)` adds a call of its function."""

    def __init__(self, name: str, functions: List[dict]):
        self.name, self.functions = name, functions

    def __call__(self, *arguments: Any, after: Sequence[Value] = (), **parameters: Any) -> Value:
        function, values = (arguments[0], arguments[1:]) if isinstance(arguments[0], str) else (None, arguments)
        if function is None and len(self.functions) != 1:
            raise InputError(f"[model {self.name}] expected the name of a function in the call, got none, and "
                             f"{len(self.functions)} functions")
        return self._call(function or self.functions[0]["name"], values, after, parameters)

    def train(self, *values: Value, after: Sequence[Value] = (), **parameters: Any) -> Value:
        return self._call("train", values, after, parameters)

    def _call(self, function: str, values: Sequence[Value], after: Sequence[Value], parameters: dict) -> Value:
        trace = tracing(f"{self.name}.{function}")
        known = [spec["name"] for spec in self.functions]
        if function not in known:
            near = difflib.get_close_matches(function, known, 1)
            raise InputError(f"[flow {trace.name}] expected a function of {self.name} out of {', '.join(known)}, got "
                             f'"{function}"' + (f'; try "{near[0]}"' if near else ""))
        trace.models.setdefault(self.name, self.functions)
        node: Dict[str, Any] = {
            "id": trace.unique_id(self.name if function == self.name else f"{self.name}.{function}"),
            "model": self.name, "function": function, "inputs": merge(*values).names, "after": trace.makers(after),
            "services": []}
        node["outputs"] = [node["id"]]
        if parameters:
            node["parameters"] = parameters
        trace.nodes.append(node)
        return Value(node["id"])


def link(source: Model, destination: Model, every: int = 1) -> None:
    """After every `every`-th training of source, destination gets its weights."""
    tracing("link").links.append({"source": source.name, "destination": destination.name, "every": every})


class Page:
    """Makes the models of a flow; `config` is the run's whole config. collimate/recipe/page.h has the same in C++."""

    def __init__(self, ask: Callable[[dict], Any], config: Dict[str, Any]):
        self._ask, self.config, self.options = ask, config, config.get("options", {})

    def _model(self, what: str, name: str, **given: Any) -> Model:
        return Model(name, self._ask({"page": what, "model": name, **given}))

    def generator(self, name: str, **role: Any) -> Model:
        """A model that draws completions. A role: weights="policy" (one name, one copy of the weights), trained, of
        (the section of `models`), head."""
        return self._model("generator", name, role=role)

    def scorer(self, name: str, **role: Any) -> Model:
        """A model that reads rows: log_probs, values, scores."""
        return self._model("scorer", name, role=role)

    def trainer(self, name: str, rows: str = "rollouts", loss: str = "grpo", **role: Any) -> Model:
        """A model that trains by a loss on such rows; `loss` is the one where the config names none."""
        return self._model("trainer", name, role={**role, "trained": True, "rows": rows, "loss": loss})

    def rewards(self, name: str = "reward") -> Model:
        """The rewards of the config."""
        return self._model("rewards", name)

    def advantages(self, rows: str = "groups", default: str = "group") -> Model:
        """algorithm.advantage, or the one that is named here."""
        return self._model("advantages", "advantages", rows=rows, default=default)

    def mixed_groups(self) -> Optional[Model]:
        """The filter that rollout.replace_equal_groups asks for; None where it does not."""
        functions = self._ask({"page": "mixed_groups"})
        return Model("mixed_groups", functions) if functions else None

    def model(self, name: str, kind: str, **parameters: Any) -> Model:
        """A module that a plugin in C++ registers."""
        return self._model("module", name, kind=kind, parameters=parameters)

    def reads_reference(self) -> bool:
        """Whether loss or advantages read the log-probs of a reference: ask after trainer() and advantages()."""
        return self._ask({"page": "reads_reference"})

    def samples(self, policy: Model, prompts: Value) -> Value:
        """Completions of the prompts: those that are finished, with rollout.round_shares, and with log-probs of their
        own where the cache of keys and values rounds."""
        drawn = policy("generate", prompts)
        finished = self._ask({"page": "finished_samples"})
        if finished:
            return Model("finished_samples", finished)("keep", drawn)
        return policy("old_log_probs", drawn) if self._ask({"page": "rounds_cache"}) else drawn

    def updates(self) -> Dict[str, int]:
        """rows_per_update and epochs of a call that trains: `trainer.train(rows, **page.updates())`."""
        return {"rows_per_update": self.config["train"]["samples_per_update"],
                "epochs": self.config["train"]["ppo_epochs"]}


class Flow:
    def __init__(self, function: Callable[..., Any], told: Dict[str, Any]):
        self.function, self.told = function, told

    def trace(self, config: Dict[str, Any], ask: Callable[[dict], Any]) -> Dict[str, Any]:
        """{"graph": its text, "samples": the node whose rows are the samples, "trained": the model to export}"""
        name = self.told["name"]
        with Trace(name) as trace:
            self.function(Page(ask, config), Value(INPUTS[self.told["rows"]]))
        trained = [node for node in trace.nodes if node["function"] == "train"]
        if not trained:
            raise InputError(f"[flow {name}] expected a call that trains, got none; try trainer.train(rows)")
        first = trained[0]
        return {"graph": trace.text([ask({"page": "input", "model": first["model"]})]),
                "samples": trace.samples_of(first), "trained": first["model"]}


FLOWS: Dict[str, Flow] = {}


def flow(function: Optional[Callable[..., Any]] = None, *, name: Optional[str] = None, rows: str = "prompts",
         losses: Sequence[str] = ("rollouts",), learning_rate: float = 1e-6,
         options: Optional[Dict[str, Any]] = None) -> Any:
    """Marks a function of a page and its rows as a recipe: `recipe: NAME` in a config whose `plugins` name this file.
    `rows` are those of the data (prompts, completions, pairs), `losses` the kinds of rows of the losses that it trains
    by, `learning_rate` and `options` the defaults of train.learning_rate and of the keys of `options`. The first line
    of the docstring is its line in `collimate help recipes`."""
    if function is None:
        return lambda marked: flow(marked, name=name, rows=rows, losses=losses, learning_rate=learning_rate,
                                   options=options)
    where = "collimate.flow"
    if not isinstance(rows, str) or rows not in INPUTS:
        raise arguments.wrong(where, f"rows to be one of {', '.join(INPUTS)}", rows)
    told = {"name": arguments.text(where, "name", name or function.__name__), "rows": rows,
            "loss_rows": arguments.texts(where, "losses", losses),
            "learning_rate": arguments.number(where, "learning_rate", learning_rate),
            "options": arguments.mapping(where, "options", options or {}),
            "summary": (function.__doc__ or "a flow in Python").strip().splitlines()[0]}
    if told["name"] in FLOWS:
        raise InputError(f"[collimate.flow] expected a name that is free, got \"{told['name']}\" again")
    FLOWS[told["name"]] = Flow(function, told)
    return function

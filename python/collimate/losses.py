"""Losses in Python: a function of a micro-batch's quantities, which PyTorch differentiates.

    @collimate.loss(rows="rollouts", columns=["advantages"])
    def mine(c): return -(c.column("advantages") * c.log_probs).sum() / c.global_tokens
"""

from __future__ import annotations

import ctypes
import struct
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from collimate import arguments
from collimate.errors import InputError


def as_bytes(tensor: Any) -> bytes:
    tensor = tensor.contiguous()
    return ctypes.string_at(tensor.data_ptr(), 4 * tensor.numel())


class LossContext:
    """One micro-batch as a loss sees it: R rows with M trainable tokens in row order, without padding. The sum of a
    loss over micro-batches must be that of the whole update: divide by the global counts."""

    def __init__(self, torch: Any, asked: Dict[str, Any], buffers: Sequence[bytes]):
        self._torch, self.token_counts = torch, asked["tokens"]
        arrays = [torch.frombuffer(bytearray(data), dtype=torch.float32) if data else torch.zeros(0)
                  for data in buffers]
        names = asked["quantities"]
        self._quantities = dict(zip(names, arrays))
        self._columns = dict(zip(asked["columns"], arrays[len(names):]))
        for name, quantity in self._quantities.items():
            if name != "log_collision":
                quantity.requires_grad_()
        self.global_tokens: float = asked["global_tokens"]  # of the whole update, on all devices
        self.global_rows: float = asked["global_rows"]
        self.options: Dict[str, Any] = asked["options"]  # of `algorithm`, those that the loss names
        self.metrics: List[Tuple[str, float, float]] = []

    def __getattr__(self, name: str) -> Any:
        """log_probs, entropy, values, token_scores, log_collision [M], row_scores [R]: those that `needs` names"""
        try:
            return self.__dict__["_quantities"][name]
        except KeyError:
            raise AttributeError(f"the loss has no {name}; its needs are "
                                 f"{', '.join(self.__dict__['_quantities'])}") from None

    def column(self, name: str) -> Any:
        """A column of the rows that `columns` names: [M] of one that has a number a token, [R] of one a row."""
        if name not in self._columns:
            raise KeyError(f"column {name!r}; the loss reads {', '.join(self._columns) or 'none'}")
        return self._columns[name]

    def _row_of_token(self) -> Any:
        counts = self._torch.tensor(self.token_counts)
        return self._torch.repeat_interleave(self._torch.arange(len(self.token_counts)), counts)

    def row_sum(self, tokens: Any) -> Any:
        """[M] -> [R]"""
        return self._torch.zeros(len(self.token_counts)).index_add(0, self._row_of_token(), tokens)

    def to_tokens(self, rows: Any) -> Any:
        """[R] -> [M], each row's number at its tokens"""
        return rows[self._row_of_token()]

    def metric(self, name: str, total: Any, count: float) -> None:
        """Adds to a metric, which is the sum of totals by the sum of counts, over all micro-batches."""
        self.metrics.append((name, float(total), float(count)))

    def mean(self, name: str, numbers: Any) -> None:
        """A metric that is the mean of one number for each token or row."""
        self.metric(name, numbers.detach().sum(), numbers.numel())


class Loss:
    def __init__(self, function: Callable[[LossContext], Any], told: Dict[str, Any]):
        self.function, self.told = function, told

    def answer(self, torch: Any, asked: Dict[str, Any], buffers: Sequence[bytes]) -> Tuple[Dict[str, Any], List[bytes]]:
        """The names of the metrics; the loss's gradient by each quantity and, as doubles, the loss with total and count
        of each metric: these may be infinite, which JSON has no word for."""
        context = LossContext(torch, asked, buffers)
        value = self.function(context)
        leaves = [quantity for quantity in context._quantities.values() if quantity.requires_grad]
        found = iter(torch.autograd.grad(value, leaves, allow_unused=True))
        gradients = []
        for quantity in context._quantities.values():
            gradient = next(found) if quantity.requires_grad else None
            gradients.append(as_bytes(gradient if gradient is not None else torch.zeros(quantity.numel())))
        numbers = [float(value.detach()), *(one for _, *both in context.metrics for one in both)]
        return ({"metrics": [name for name, _, _ in context.metrics]},
                [*gradients, struct.pack(f"<{len(numbers)}d", *numbers)])


LOSSES: Dict[str, Loss] = {}


def loss(function: Optional[Callable[[LossContext], Any]] = None, *, name: Optional[str] = None,
         rows: str = "rollouts", columns: Sequence[str] = (), needs: Sequence[str] = ("log_probs",),
         options: Sequence[str] = ()) -> Any:
    """Marks a function as a loss that `algorithm.loss_type` may name. It gets a LossContext and gives a scalar of
    PyTorch. `rows` are those that it trains on: completions, pairs, scored pairs, marked, rollouts or values;
    `columns` those of the batch that it reads, `needs` the quantities, `options` the keys of `algorithm`."""
    if function is None:
        return lambda marked: loss(marked, name=name, rows=rows, columns=columns, needs=needs, options=options)
    where = "collimate.loss"
    told = {"name": arguments.text(where, "name", name or function.__name__),
            "rows": arguments.text(where, "rows", rows), "columns": arguments.texts(where, "columns", columns),
            "needs": arguments.texts(where, "needs", needs), "options": arguments.texts(where, "options", options),
            "rows_per_unit": 2 if rows.endswith("pairs") else 1}
    if told["name"] in LOSSES:
        raise InputError(f"[collimate.loss] expected a name that is free, got \"{told['name']}\" again")
    LOSSES[told["name"]] = Loss(function, told)
    return function

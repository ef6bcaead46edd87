"""Rewards that are functions of the caller's process, and the entries of a config that name them."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Union

from collimate import reward_worker
from collimate.errors import InputError

# A function in TRL's or verl's shape, or an entry of a config's `reward:` list, in which "function" may be a function.
Reward = Union[Callable[..., Any], Mapping[str, Any]]


class MemoryReward:
    """A function under the name by which the config has it."""

    def __init__(self, name: str, function: Callable[..., Any]):
        self.name, self.function = name, reward_worker.Remembered(function)
        try:
            self.call, self.reserved = reward_worker.shape_of(function)
        except (TypeError, ValueError) as error:
            raise InputError(f"[rewards] expected a function whose parameters Python knows, got {function!r}: {error}; "
                             "try a function of your own that calls it") from error

    def answer(self, request: str) -> str:
        answer = reward_worker.answer(self.function, self.call, json.loads(request))
        return reward_worker.encoded(answer).decode()

    def native(self) -> tuple:
        return self.name, self.reserved, self.call is reward_worker.call_batch, self.answer

    def cause_of(self, error: Exception) -> BaseException | None:
        """Gives what the function raised, where the run ended by that."""
        return self.function.raised if re.search(rf"\[reward {self.name}(\]| on )", str(error)) else None


def name_of(function: Callable[..., Any], taken: Collection[str]) -> str:
    """The function's own name, in words that a metric may have; a number behind one that is taken."""
    own = getattr(function, "__name__", type(function).__name__)
    name = own if re.fullmatch(r"\w+", own) else "reward"
    names = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(2)))
    return next(unique for unique in names if unique not in taken)


def split(rewards: Iterable[Reward]) -> tuple[list[dict[str, Any]], list[MemoryReward]]:
    """(the entries of the config, the functions that they name)"""
    if callable(rewards) or isinstance(rewards, Mapping):
        rewards = [rewards]
    entries: list[dict[str, Any]] = []
    functions: list[MemoryReward] = []
    for reward in rewards:
        entry = dict(reward) if isinstance(reward, Mapping) else {"function": reward}
        if callable(function := entry.get("function")):
            name = name_of(function, [other.name for other in functions])
            functions.append(MemoryReward(name, function))
            entry["function"] = name
        elif not isinstance(reward, Mapping):
            raise InputError("[rewards] expected a function or an entry of a config's reward list, got "
                             f'{reward!r:.100}; try {{"rule": "exact"}}')
        entries.append(entry)
    return entries, functions

"""Kinds of what decorators are given, which are checked where a plugin is imported."""

from __future__ import annotations

from typing import Any, List

from collimate.errors import InputError


def wrong(where: str, expected: str, got: Any, remedy: str = "") -> InputError:
    return InputError(f"[{where}] expected {expected}, got {got!r}" + (f"; try {remedy}" if remedy else ""))


def text(where: str, what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise wrong(where, f"{what} to be a text", value)
    return value


def texts(where: str, what: str, value: Any) -> List[str]:
    """A list of texts; one text alone would be a list of its letters."""
    remedy = f'{what}=["{value}"]' if isinstance(value, str) else ""
    if isinstance(value, str) or not hasattr(value, "__iter__") or not all(isinstance(one, str) for one in value):
        raise wrong(where, f"{what} to be a list of texts", value, remedy)
    return list(value)


def number(where: str, what: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise wrong(where, f"{what} to be a number", value)
    return value


def truth(where: str, what: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong(where, f"{what} to be True or False", value)
    return value


def mapping(where: str, what: str, value: Any) -> dict:
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise wrong(where, f"{what} to be a dict whose keys are texts", value)
    return value

"""Holds a user's environments for collimate: `python -m collimate.gym_worker FILE.py CLASS`.

Frames as those of reward_worker. A sample's environment is Class(prompt=..., **columns of its row), of which it gets
those that its parameters name. Each turn of the policy goes to step(completion), which gives one of
  {"observation": text or None, "reward": number, "done": bool}, of which each may be left out,
  (observation, reward, terminated, truncated, info), as in Gymnasium,
  a text: the observation alone, and the sample goes on,
  None: the sample ends.
Without an observation a sample ends, too. close() is called at the end where there is one.
"""

import inspect
import math
import sys

from collimate.reward_worker import NotThere, accepts, failed, failure_of, own_frames, trace
from collimate.reward_worker import load as load_function

KEYS = ("observation", "reward", "done")


def load(path, name):
    made = load_function(path, name, "class")
    if inspect.isclass(made) and not callable(getattr(made, "step", None)):
        raise NotThere(f"{name} without a method step; try def step(self, completion), which answers a turn")
    return made


def begin(made, prompt, example):
    columns = {name: value for name, value in (example or {}).items() if name != "prompt" and accepts(made, name)}
    try:
        inspect.signature(made).bind(prompt=prompt, **columns)
    except TypeError as error:
        name = getattr(made, "__name__", "the environment")
        raise TypeError(f"{name}{inspect.signature(made)} cannot be made with prompt and the data's columns: "
                        f"{error}") from None
    return made(prompt=prompt, **columns)


def parts_of(value):
    """(observation, reward, done) of what a step gave."""
    if isinstance(value, dict):
        unknown = [key for key in value if key not in KEYS]
        if unknown:
            raise TypeError(f"step gave the key {unknown[0]!r}, expected some of {', '.join(KEYS)}")
        observation = value.get("observation")
        return observation, value.get("reward", 0.0), value.get("done", observation is None)
    if isinstance(value, tuple):
        if len(value) != 5:
            raise TypeError(f"step gave a tuple of {len(value)}, expected observation, reward, terminated, truncated "
                            "and info")
        return value[0], value[1], value[2] or value[3]
    return value, 0.0, value is None


def checked(value):
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("step gave a coroutine, which nothing awaits; try def step in the place of async def step")
    observation, reward, done = parts_of(value)
    if observation is not None and not isinstance(observation, str):
        raise TypeError(f"step gave the observation {observation!r:.80}, expected a text")
    reward = 0.0 if reward is None else float(reward)
    if not math.isfinite(reward):
        raise ValueError(f"step gave the reward {reward}")
    done = bool(done) or observation is None
    return {"observation": None if done else observation, "reward": reward, "done": done}


def end(living, episode):
    close = getattr(living.pop(episode, None), "close", None)
    try:
        if callable(close):
            close()
    except Exception as error:  # the sample is over: it fails no longer, nor does another one
        print(f"close() raised {trace(error)}", end="")


def answer(made, living, request):
    """Answers a turn that rlhf/reward/gym.h asks about."""
    episode = request["episode"]
    try:
        for other in request["forget"]:
            end(living, other)
        if "begin" in request:
            living[episode] = begin(made, request["begin"]["prompt"], request["begin"]["example"])
        given = checked(living[episode].step(request["completion"]))
        if given["done"]:
            end(living, episode)
        return given
    except Exception as error:
        living.pop(episode, None)
        told = failed(error)
        return {"error": told["error"], "trace": told["trace"]}


def main(path, name):
    frames = own_frames()
    frames.receive()
    try:
        made = load(path, name)
    except BaseException as error:
        frames.send(failure_of(error))
        return
    frames.send({"has_reset": callable(getattr(made, "reset", None))})
    living = {}
    while (request := frames.receive()) is not None:
        frames.send(answer(made, living, request))
    for episode in list(living):
        end(living, episode)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

#pragma once

#include <memory>
#include <string>

#include "collimate/rlhf/reward/reward.h"
#include "collimate/rlhf/reward/reward_section.h"

namespace collimate::rlhf {

// A `python:` key names this.
struct PythonFunction {
  std::string file;  // a .py file
  // score(prompts, completions, **columns) -> list[float | None], or verl's compute_score
  std::string function = "score";
};
// Parses "FILE.py" or "FILE.py:function".
PythonFunction python_function(const std::string& target);

// A Python function in a worker process of its own, called over pipes with JSON lines. A call that takes longer than
// one sample may is killed with its process group; its samples, and those of a call that raises, are then scored one by
// one, so that only those that hang or raise fail; of what was raised, the first is logged, and of what a call prints
// the first 256 KiB. It runs in a sandbox (host/sandbox.h) unless the section says otherwise, which a warning tells.
// None for a sample is neither a value nor an error. A call that gives another number of rewards than it has samples is
// an error of each. InputError when the file cannot be imported, with Python's own message, and for columns of the data
// by whose names the function gets something else.
std::unique_ptr<Reward> python_reward(const PythonSection& options);

}  // namespace collimate::rlhf

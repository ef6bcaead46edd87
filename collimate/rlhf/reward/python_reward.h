#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

struct PythonRewardOptions {
  std::string file;  // a .py file
  std::string function =
      "score";  // score(prompts, completions, **columns) -> list[float | None], or verl's compute_score
  double timeout_seconds = 5.0;         // for one sample; a call of several that takes longer is asked again one by one
  int64_t batch_samples = 64;           // samples of one call
  double start_timeout_seconds = 60.0;  // import included
  std::string python = "";              // interpreter; default: $COLLIMATE_PYTHON, else python3 on the PATH

  // From {python: FILE.py[:function], timeout_seconds: …}. InputError for unknown keys.
  static PythonRewardOptions parse(const nlohmann::json& entry);
};

// A Python function in a worker process of its own, called over pipes with JSON lines. A call that takes longer than
// one sample may is killed with its process group; its samples, and those of a call that raises, are then scored one by
// one, so that only those that hang or raise fail; of what was raised, the first is logged. A call that gives another
// number of rewards than it has samples is an error of each of them. InputError when the file cannot be imported, with
// Python's own message.
std::unique_ptr<Reward> python_reward(const PythonRewardOptions& options);

}  // namespace collimate::rlhf

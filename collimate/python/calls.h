#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/python/called_reward.h"
#include "collimate/recipe/train.h"

namespace collimate::python {

// The verbs of the command line as functions of the caller's process, in JSON. Blocking; RunError while another one is
// going on in the process. They read and write what the verbs do, print notes and progress on stderr, and throw what
// the verbs throw.

// A config as Python has it: a path, or its values.
struct GivenConfig {
  nlohmann::json value;
  std::vector<std::string> sets;        // "a.b=value"
  std::vector<CalledFunction> rewards;  // which it may name
};

struct TrainRequest {
  GivenConfig config;
  std::string output, resume;
  bool overwrite = false;
  std::vector<std::string> worker_command;                            // of `cluster: local-processes`
  std::function<recipe::GoesOn(const std::string& line)> on_metrics;  // each line of metrics.jsonl
};

// {"iterations", "seconds", "first_evaluation", "last_evaluation", "summary"}; after SIGINT or SIGTERM {"signal",
// "message"}, with the caller's handlers back in place.
nlohmann::ordered_json train(const TrainRequest& request);

// The document of `collimate check --json`; what would train wrong is in its "problems".
nlohmann::ordered_json check(const GivenConfig& config);

struct EvaluateRequest {
  std::vector<std::string> models;
  nlohmann::json call;  // recipe::EvaluationCall's members, its `section` with a config's list of rewards
  std::vector<CalledFunction> rewards;
  bool download = false;
};

// The document of `collimate eval --json`.
nlohmann::ordered_json evaluate(const EvaluateRequest& request);

}  // namespace collimate::python

#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/python/called_reward.h"
#include "collimate/recipe/train.h"

namespace collimate::python {

// These functions are the verbs of the command line, for the caller's process, with results in JSON. Each blocks, and
// throws RunError while another one is going on in the process. They read and write the same files as the verbs, print
// notes and progress on stderr, and throw the same errors.

// A config as Python gives it.
struct GivenConfig {
  nlohmann::json value;                 // a path, or the config's values
  std::vector<std::string> sets;        // "a.b=value"
  std::vector<CalledFunction> rewards;  // that the config may name
};

struct TrainRequest {
  GivenConfig config;
  std::string output, resume;
  bool overwrite = false;
  std::vector<std::string> worker_command;                            // for `cluster: local-processes`
  std::function<recipe::GoesOn(const std::string& line)> on_metrics;  // gets each line of metrics.jsonl
};

// Trains and returns {"iterations", "seconds", "first_evaluation", "last_evaluation", "summary"}, or {"signal",
// "message"} after SIGINT or SIGTERM. The caller's signal handlers are then back in place.
nlohmann::ordered_json train(const TrainRequest& request);

// Returns the document of `collimate check --json`; its "problems" list what would train wrong.
nlohmann::ordered_json check(const GivenConfig& config);

struct EvaluateRequest {
  std::vector<std::string> models;
  nlohmann::json call;  // the members of recipe::EvaluationCall; `section` has a list of rewards as a config has it
  std::vector<CalledFunction> rewards;
  bool download = false;
};

// Returns the document of `collimate eval --json`, or {"signal", "message"} after SIGINT or SIGTERM.
nlohmann::ordered_json evaluate(const EvaluateRequest& request);

}  // namespace collimate::python

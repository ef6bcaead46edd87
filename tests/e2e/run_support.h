#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/recipe/train.h"
#include "tests/support/small_task.h"

namespace collimate::test {

using Metrics = std::vector<nlohmann::json>;

// Runs `text` in process; its records are in `output`.
inline recipe::TrainOutcome train_text(const std::string& text, const std::string& output,
                                       const std::vector<std::string>& sets = {}, recipe::TrainCall call = {}) {
  write_text(output + ".yaml", text);
  call.output = output;
  return recipe::train(recipe::load(output + ".yaml", sets), call);
}

inline Metrics metrics_of(const std::string& output) {
  Metrics metrics;
  for (const std::string& line : lines_of(output + "/metrics.jsonl")) metrics.push_back(nlohmann::json::parse(line));
  return metrics;
}

inline std::string model_bytes(const std::string& output) { return read_text(output + "/model/model.safetensors"); }

}  // namespace collimate::test

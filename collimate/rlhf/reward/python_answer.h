#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// Requests to a reward in Python and its answers are JSON: the form of python/collimate/reward_worker.py, whether the
// function runs in a process of its own or in the caller's.

// {"samples": [{"prompt", "completion", "finished", "example"}, …]}
nlohmann::json python_request(std::span<const RewardSample> samples);

struct PythonAnswer {
  std::vector<RewardResult> results;  // by sample
  std::string batch_trace;  // Python's lines of a call of all that raised, after which each was asked; else ""
  size_t raised = 0;        // the first sample on which the function raised
  std::string trace;        // Python's lines of that; "" when it raised on none
};
// Parses {"results": [{"value", "error", "steps", "answer", "trace"}, …], "batch_trace"}.
PythonAnswer parse_python_answer(const nlohmann::json& answer);

// InputError for a row of the data with a column by whose name the function gets something else.
void refuse_reserved(const std::vector<std::string>& reserved, const std::string& function,
                     const nlohmann::json& example);

// Logs, each once in a run, with Python's lines and a sample: on what a function raised first; that it raised on
// several samples at once and on none of them alone.
class PythonWarnings {
 public:
  explicit PythonWarnings(std::string function) : function_(std::move(function)) {}
  // `instead`, where it is not empty, is told Python's lines and the sample in the place of the log.
  void tell(const PythonAnswer& answer, std::span<const RewardSample> asked, const Reward::Raised& instead);

 private:
  void tell_batch(const std::string& trace, std::span<const RewardSample> asked);
  void tell_raise(const RewardSample& sample, const std::string& trace, bool one_by_one);

  std::string function_;
  bool batch_told_ = false;
  bool raise_told_ = false;
};

}  // namespace collimate::rlhf

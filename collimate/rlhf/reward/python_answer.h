#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// Requests to a reward in Python and its answers are JSON, in the form of python/collimate/reward_worker.py, both when
// the function runs in a process of its own and when it runs in the caller's.

// Returns the request {"samples": [{"prompt", "completion", "finished", "example"}, …]}.
nlohmann::json python_request(std::span<const RewardSample> samples);

struct PythonAnswer {
  std::vector<RewardResult> results;  // by sample
  std::string batch_trace;  // traceback of the call of all samples, if it raised and each was then asked alone; else ""
  size_t raised = 0;        // the first sample on which the function raised
  std::string trace;        // traceback from that sample; "" if the function raised on none
};
// Parses {"results": [{"value", "error", "steps", "answer", "trace"}, …], "batch_trace"}.
PythonAnswer parse_python_answer(const nlohmann::json& answer);

// Throws InputError if the row of the data has a column with one of the reserved names, by which the function gets
// another argument.
void refuse_reserved(const std::vector<std::string>& reserved, const std::string& function,
                     const nlohmann::json& example);

// Logs two warnings, each once in a run, with the traceback and a sample: that a function raised on a sample, and that
// it raised on several samples in one call but on none of them alone.
class PythonWarnings {
 public:
  explicit PythonWarnings(std::string function) : function_(std::move(function)) {}
  // Logs the warning that the answer calls for. If `instead` is not empty, it gets the traceback and the sample, every
  // time, and nothing is logged.
  void tell(const PythonAnswer& answer, std::span<const RewardSample> asked, const Reward::Raised& instead);

 private:
  void tell_batch(const std::string& trace, std::span<const RewardSample> asked);
  void tell_raise(const RewardSample& sample, const std::string& trace, bool one_by_one);

  std::string function_;
  bool batch_told_ = false;
  bool raise_told_ = false;
};

}  // namespace collimate::rlhf

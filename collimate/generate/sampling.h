#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace collimate::generate {

// How one request's tokens are drawn. Defaults leave the model's distribution as it is.
struct SamplingParams {
  int64_t max_tokens = 128;  // new tokens at most
  double temperature = 1.0;  // 0: greedy, with log-probs at temperature 1
  double top_p = 1.0;
  int64_t top_k = 0;  // 0: all
  double min_p = 0.0;
  bool ignore_eos = false;
  std::vector<int32_t> stop_ids;
  uint64_t seed = 0;  // mixed into the draw; equal seeds and uids give equal draws

  nlohmann::json to_json() const;
  // Unknown keys and values out of range are InputErrors that name them.
  static SamplingParams from_json(const nlohmann::json& json);
};

}  // namespace collimate::generate

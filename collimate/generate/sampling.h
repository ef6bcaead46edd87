#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collimate/tensor/ops/top_k.h"

namespace collimate::generate {

using tensor::TokenLogProb;
using LogitBias = std::map<int32_t, double>;  // by token id: the number that is added to its logit

// Says how one request's tokens are drawn and where it ends. Defaults leave the model's distribution as it is. Names,
// meaning and ranges are those of OpenAI's API and of vLLM's SamplingParams; sampling_fields.h has them all.
struct SamplingParams {
  int64_t max_tokens = 128;  // new tokens at most
  int64_t min_tokens = 0;    // the first min_tokens new tokens neither end the request nor complete a stop string
  double temperature = 1.0;  // 0: greedy, with log-probs at temperature 1
  double top_p = 1.0;
  int64_t top_k = 0;  // 0: all
  double min_p = 0.0;
  double presence_penalty = 0.0;    // subtracted from the logits of tokens that the completion has
  double frequency_penalty = 0.0;   // subtracted from them once for each time that it has them
  double repetition_penalty = 1.0;  // tokens of prompt and completion: divides positive logits, multiplies others
  LogitBias logit_bias;             // each in [-100, 100]
  bool ignore_eos = false;
  std::vector<int32_t> stop_ids;
  std::vector<std::string> stop;  // UTF-8 texts that end the completion; need a tokenizer. See completion_text.h
  // The form that the completion must have (text/constraint/constraint.h); at most one of these is not empty. Tokens
  // that lead away from the form are not drawn, and the completion may end only where the form may. Needs a tokenizer
  // and an end-of-sequence token.
  std::string regex, json_schema, grammar;
  uint64_t seed = 0;           // mixed into the draws; equal seeds and uids give equal draws
  double timeout_seconds = 0;  // after this time from submission the request ends with the tokens so far. 0: no limit
  // So many of the most likely tokens are reported beside each drawn one; draws do not change.
  int64_t top_log_probs = 0;

  nlohmann::json to_json() const;
  // Throws InputError for unknown keys, for values out of range and for min_tokens above max_tokens, naming them.
  static SamplingParams from_json(const nlohmann::json& json);
};
inline void to_json(nlohmann::json& out, const SamplingParams& params) { out = params.to_json(); }
inline void from_json(const nlohmann::json& in, SamplingParams& params) { params = SamplingParams::from_json(in); }

// Returns the i-th of `rows` equal parts of a list: the most likely tokens at the place of the i-th token.
inline std::span<const TokenLogProb> top_of(std::span<const TokenLogProb> top_log_probs, size_t rows, size_t i) {
  const size_t width = top_log_probs.size() / rows;
  return top_log_probs.subspan(i * width, width);
}

constexpr double kMostLogitBias = 100.0;
constexpr int64_t kMostTopLogProbs = tensor::kMostTopTokens;
constexpr double kLongestTimeout = 1e9;  // seconds
constexpr int64_t kLargestTokenId = std::numeric_limits<int32_t>::max();

// Parses {"token id": number, ...}. Returns nothing for any other JSON or a value out of range.
std::optional<LogitBias> parse_logit_bias(const nlohmann::json& json);

}  // namespace collimate::generate

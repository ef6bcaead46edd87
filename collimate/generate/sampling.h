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
using LogitBias = std::map<int32_t, double>;  // by token id: what is added to its logit

// How one request's tokens are drawn and where it ends. Defaults leave the model's distribution as it is. Names,
// meaning and ranges are those of OpenAI's API and of vLLM's SamplingParams; sampling_fields.h has them all.
struct SamplingParams {
  int64_t max_tokens = 128;  // new tokens at most
  int64_t min_tokens = 0;    // that many new tokens neither end the request nor complete a stop string
  double temperature = 1.0;  // 0: greedy, with log-probs at temperature 1
  double top_p = 1.0;
  int64_t top_k = 0;  // 0: all
  double min_p = 0.0;
  double presence_penalty = 0.0;    // taken from logits of tokens generated before
  double frequency_penalty = 0.0;   // the same, once for every time
  double repetition_penalty = 1.0;  // tokens of prompt and completion: divides positive logits, multiplies others
  LogitBias logit_bias;             // each in [-100, 100]
  bool ignore_eos = false;
  std::vector<int32_t> stop_ids;
  std::vector<std::string> stop;  // UTF-8 text that ends the completion; needs a tokenizer. See completion_text.h
  // The completion has to be this (text/constraint/constraint.h), if not empty: at most one. Tokens that lead away are
  // not drawn, and its end is where it may end. Needs a tokenizer and an end of sequence.
  std::string regex, json_schema, grammar;
  uint64_t seed = 0;           // mixed into the draw; equal seeds and uids give equal draws
  double timeout_seconds = 0;  // from its submission on; then it ends with what it has. 0: no limit
  // This many of the most likely tokens are reported beside each drawn one; it changes no draw.
  int64_t top_log_probs = 0;

  nlohmann::json to_json() const;
  // Unknown keys and values out of range are InputErrors that name them.
  static SamplingParams from_json(const nlohmann::json& json);
};
inline void to_json(nlohmann::json& out, const SamplingParams& params) { out = params.to_json(); }
inline void from_json(const nlohmann::json& in, SamplingParams& params) { params = SamplingParams::from_json(in); }

// The i-th of `rows` equal parts of a list: the most likely tokens in one token's place.
inline std::span<const TokenLogProb> top_of(std::span<const TokenLogProb> top_log_probs, size_t rows, size_t i) {
  const size_t width = top_log_probs.size() / rows;
  return top_log_probs.subspan(i * width, width);
}

constexpr double kMostLogitBias = 100.0;
constexpr int64_t kMostTopLogProbs = tensor::kMostTopTokens;
constexpr double kLongestTimeout = 1e9;  // seconds
constexpr int64_t kLargestTokenId = std::numeric_limits<int32_t>::max();

// {"token id": number, ...}; nothing when it is anything else or a value is out of range.
std::optional<LogitBias> parse_logit_bias(const nlohmann::json& json);

}  // namespace collimate::generate

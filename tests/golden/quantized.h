#pragma once

#include <algorithm>
#include <cmath>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/model/huggingface_check.h"
#include "collimate/model/safetensors.h"
#include "tests/golden/family_weights.h"
#include "tests/support/model/pack_sequences.h"
#include "tests/support/model/raw_safetensors.h"
#include "tests/support/model/tiny_weights.h"

// Checkpoints of few bits beside what other programs read from them.
namespace collimate::golden {

using model::TensorEntry;
using model::testing::bf16_bytes;
using model::testing::bytes_of;
using model::testing::RawTensor;
using nlohmann::json;

inline json golden_of(const std::string& file) {
  return json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/" + file));
}

// The logits of a sequence of tokens.
inline std::vector<float> logits_of_ids(const std::shared_ptr<model::Weights>& weights, const json& tokens) {
  model::Model decoder(weights, {});
  const auto ids = tokens.get<std::vector<int32_t>>();
  const std::span<const int32_t> sequence = ids;
  return model::testing::to_vector(decoder.logits(decoder.forward(model::pack_sequences({&sequence, 1}))));
}

// The largest difference of two lists; infinity of lists that are not as long.
inline float worst_difference(const std::vector<float>& got, const std::vector<float>& wanted) {
  if (got.size() != wanted.size()) return INFINITY;
  float worst = 0;
  for (size_t i = 0; i < got.size(); ++i) worst = std::max(worst, std::abs(got[i] - wanted[i]));
  return worst;
}

}  // namespace collimate::golden

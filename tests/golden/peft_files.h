#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "collimate/model/huggingface_check.h"
#include "tests/golden/family_weights.h"
#include "tests/support/model/raw_safetensors.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::golden {

// Writes a case's adapters over the model in `base`: half of what the formula says.
inline void write_adapters(const std::string& directory, const std::string& base, const nlohmann::json& one) {
  std::filesystem::create_directories(directory);
  std::vector<model::testing::RawTensor> tensors;
  for (const auto& [name, sizes] : one.at("tensors").items()) {
    std::vector<float> values(sizes[0].get<size_t>() * sizes[1].get<size_t>());
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(wave(name, static_cast<int64_t>(i)) / 2);
    tensors.push_back({name, "F32", sizes, model::testing::bytes_of(values)});
  }
  model::testing::write_raw_safetensors(directory + "/adapter_model.safetensors", tensors);
  nlohmann::json config = one.at("adapter_config");
  config["base_model_name_or_path"] = base;
  std::ofstream(directory + "/adapter_config.json") << config;
}

// The logits of a directory's model for the ids of a case.
inline std::vector<float> logits_of(const std::string& directory, const nlohmann::json& one,
                                    const model::WeightsOptions& options = {}) {
  model::check_huggingface(directory, "lm", options);
  model::Model decoder(model::load_huggingface(directory, "lm", options, {}), {});
  const auto ids = one.at("ids").get<std::vector<int32_t>>();
  return model::testing::to_vector(decoder.logits(decoder.forward(model::testing::pack({ids}))));
}

// How far logits are from those of a case.
inline float furthest(const std::vector<float>& got, const nlohmann::json& one) {
  const auto wanted = one.at("logits").get<std::vector<float>>();
  EXPECT_EQ(got.size(), wanted.size());
  float most = 0;
  for (size_t i = 0; i < wanted.size(); ++i) most = std::max(most, std::abs(got[i] - wanted[i]));
  return most;
}

}  // namespace collimate::golden

// Each family's values of keys that a config.json leaves out, against Hugging Face transformers (make_defaults.py).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/shape/model_shape.h"

namespace collimate::golden {
namespace {

using nlohmann::json;

// Numbers without their last digits, in which two ways to compute a root differ.
void shorten(json& value) {
  if (value.is_number_float()) value = std::stod(fmt::format("{:.12g}", value.get<double>()));
  if (value.is_structured())
    for (json& each : value) shorten(each);
}

json keys_of(const json& config, const std::string& where) {
  json keys = shape::to_config(shape::parse_model_shape(config, where));
  for (const char* other : {"eos_token_id", "bos_token_id", "pad_token_id"}) keys.erase(other);  // files name them
  shorten(keys);
  return keys;
}

TEST(Defaults, AreThoseOfTransformers) {
  std::vector<std::string> found = {"qwen"};  // of which transformers has no class
  for (const json& one : json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/defaults.json"))) {
    const std::string family = one.at("given").at("model_type");
    found.push_back(family);
    try {
      const json given = keys_of(one.at("given"), "given"), whole = keys_of(one.at("whole"), "whole");
      EXPECT_EQ(given, whole) << family << "\n" << json::diff(given, whole).dump();
    } catch (const std::exception& error) {
      ADD_FAILURE() << family << ": " << error.what();
    }
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found, shape::known_families());
}

}  // namespace
}  // namespace collimate::golden

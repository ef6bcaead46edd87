#include "collimate/generate/sampling.h"

#include <cmath>

#include "collimate/base/error.h"

namespace collimate::generate {
namespace {

constexpr const char* kKnown = "max_tokens, temperature, top_p, top_k, min_p, ignore_eos, stop_ids, seed";

[[noreturn]] void reject(const std::string& key, const std::string& expected, const nlohmann::json& got) {
  throw base::InputError(base::expectation("sampling." + key, expected, got.dump()));
}

double number(const std::string& key, const nlohmann::json& value, double low, double high, const std::string& range) {
  if (!value.is_number()) reject(key, "a number " + range, value);
  const double result = value.get<double>();
  if (!(result >= low && result <= high)) reject(key, "a number " + range, value);
  return result;
}

int64_t count(const std::string& key, const nlohmann::json& value, int64_t low) {
  if (!value.is_number_integer() || value.get<int64_t>() < low)
    reject(key, fmt::format("an integer >= {}", low), value);
  return value.get<int64_t>();
}

void set(SamplingParams& params, const std::string& key, const nlohmann::json& value) {
  if (key == "max_tokens") {
    params.max_tokens = count(key, value, 1);
  } else if (key == "temperature") {
    params.temperature = number(key, value, 0.0, 1e4, "in [0, 10000]");
  } else if (key == "top_p") {
    params.top_p = number(key, value, std::nextafter(0.0, 1.0), 1.0, "in (0, 1]");
  } else if (key == "top_k") {
    params.top_k = count(key, value, 0);
  } else if (key == "min_p") {
    params.min_p = number(key, value, 0.0, 1.0, "in [0, 1]");
  } else if (key == "ignore_eos") {
    if (!value.is_boolean()) reject(key, "true or false", value);
    params.ignore_eos = value.get<bool>();
  } else if (key == "stop_ids") {
    if (!value.is_array()) reject(key, "a list of token ids", value);
    for (const auto& id : value) params.stop_ids.push_back(static_cast<int32_t>(count(key, id, 0)));
  } else if (key == "seed") {
    if (!value.is_number_integer()) reject(key, "an integer", value);
    params.seed = value.get<uint64_t>();
  } else {
    throw base::InputError(base::expectation("sampling", std::string("one of ") + kKnown, key));
  }
}

}  // namespace

nlohmann::json SamplingParams::to_json() const {
  return {{"max_tokens", max_tokens}, {"temperature", temperature}, {"top_p", top_p},       {"top_k", top_k},
          {"min_p", min_p},           {"ignore_eos", ignore_eos},   {"stop_ids", stop_ids}, {"seed", seed}};
}

SamplingParams SamplingParams::from_json(const nlohmann::json& json) {
  if (!json.is_object()) throw base::InputError(base::expectation("sampling", "an object", json.dump()));
  SamplingParams params;
  for (const auto& [key, value] : json.items()) set(params, key, value);
  return params;
}

}  // namespace collimate::generate

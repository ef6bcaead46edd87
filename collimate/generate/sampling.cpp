#include "collimate/generate/sampling.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "collimate/base/error.h"
#include "collimate/text/utf8.h"

namespace collimate::generate {
namespace {

using nlohmann::json;

constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

std::string shown(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

[[noreturn]] void reject(const std::string& key, const std::string& expected, const json& got) {
  throw base::InputError(base::expectation("sampling." + key, expected, shown(got)));
}

double number(const std::string& key, const json& value, double low, double high, const std::string& range) {
  if (!value.is_number()) reject(key, "a number " + range, value);
  const double result = value.get<double>();
  if (!(result >= low && result <= high)) reject(key, "a number " + range, value);
  return result;
}

int64_t count(const std::string& key, const json& value, int64_t low, int64_t high = kAny) {
  const std::string range = high == kAny ? fmt::format(">= {}", low) : fmt::format("in [{}, {}]", low, high);
  if (!value.is_number_integer() || value.get<int64_t>() < low || value.get<int64_t>() > high)
    reject(key, "an integer " + range, value);
  return value.get<int64_t>();
}

double penalty(const std::string& key, const json& value) {
  return number(key, value, -kMostPenalty, kMostPenalty, "in [-2, 2]");
}

std::vector<int32_t> token_ids(const std::string& key, const json& value) {
  if (!value.is_array()) reject(key, "a list of token ids", value);
  std::vector<int32_t> ids;
  for (const json& id : value) ids.push_back(static_cast<int32_t>(count(key, id, 0, kLargestTokenId)));
  return ids;
}

// One string or a list of them.
std::vector<std::string> stop_strings(const std::string& key, const json& value) {
  const json list = value.is_array() ? value : json::array({value});
  for (const json& entry : list) {
    const bool good = entry.is_string() && !entry.get_ref<const std::string&>().empty() &&
                      text::is_valid_utf8(entry.get_ref<const std::string&>());
    if (!good) reject(key, "texts in UTF-8 that are not empty", entry);
  }
  return list.get<std::vector<std::string>>();
}

LogitBias logit_bias(const std::string& key, const json& value) {
  if (auto bias = parse_logit_bias(value)) return *bias;
  reject(key, "an object of token ids and numbers in [-100, 100]", value);
}

struct Field {
  const char* key;
  void (*read)(SamplingParams& params, const std::string& key, const json& value);
};

using P = SamplingParams;
using K = const std::string&;
using V = const json&;
constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr Field kFields[] = {
    {"max_tokens", [](P& p, K key, V value) { p.max_tokens = count(key, value, 1); }},
    {"min_tokens", [](P& p, K key, V value) { p.min_tokens = count(key, value, 0); }},
    {"temperature", [](P& p, K key, V value) { p.temperature = number(key, value, 0.0, 1e4, "in [0, 10000]"); }},
    {"top_p", [](P& p, K key, V value) { p.top_p = number(key, value, kLeast, 1.0, "in (0, 1]"); }},
    {"top_k", [](P& p, K key, V value) { p.top_k = count(key, value, 0); }},
    {"min_p", [](P& p, K key, V value) { p.min_p = number(key, value, 0.0, 1.0, "in [0, 1]"); }},
    {"presence_penalty", [](P& p, K key, V value) { p.presence_penalty = penalty(key, value); }},
    {"frequency_penalty", [](P& p, K key, V value) { p.frequency_penalty = penalty(key, value); }},
    {"repetition_penalty",
     [](P& p, K key, V value) {
       p.repetition_penalty = number(key, value, kLeast, kMostRepetitionPenalty, "in (0, 10000]");
     }},
    {"logit_bias", [](P& p, K key, V value) { p.logit_bias = logit_bias(key, value); }},
    {"ignore_eos",
     [](P& p, K key, V value) {
       if (!value.is_boolean()) reject(key, "true or false", value);
       p.ignore_eos = value.get<bool>();
     }},
    {"stop_ids", [](P& p, K key, V value) { p.stop_ids = token_ids(key, value); }},
    {"stop", [](P& p, K key, V value) { p.stop = stop_strings(key, value); }},
    {"seed",
     [](P& p, K key, V value) {
       if (!value.is_number_integer()) reject(key, "an integer", value);
       p.seed = value.get<uint64_t>();
     }},
    {"timeout_seconds",
     [](P& p, K key, V value) { p.timeout_seconds = number(key, value, 0.0, kLongestTimeout, "in [0, 1000000000]"); }},
    {"top_logprobs", [](P& p, K key, V value) { p.top_log_probs = count(key, value, 0, kMostTopLogProbs); }},
};

const Field& find_field(const std::string& key) {
  std::string known;
  for (const Field& field : kFields) {
    if (key == field.key) return field;
    known += (known.empty() ? "" : ", ") + std::string(field.key);
  }
  throw base::InputError(base::expectation("sampling", "one of " + known, key));
}

json bias_json(const LogitBias& bias) {
  json out = json::object();
  for (const auto& [id, value] : bias) out[std::to_string(id)] = value;
  return out;
}

}  // namespace

json SamplingParams::to_json() const {
  json out = {{"max_tokens", max_tokens},
              {"min_tokens", min_tokens},
              {"temperature", temperature},
              {"top_p", top_p},
              {"top_k", top_k},
              {"min_p", min_p},
              {"presence_penalty", presence_penalty},
              {"frequency_penalty", frequency_penalty},
              {"repetition_penalty", repetition_penalty},
              {"logit_bias", bias_json(logit_bias)},
              {"ignore_eos", ignore_eos},
              {"stop_ids", stop_ids},
              {"stop", stop},
              {"seed", seed}};
  if (timeout_seconds > 0) out["timeout_seconds"] = timeout_seconds;
  if (top_log_probs != 0) out["top_logprobs"] = top_log_probs;
  return out;
}

SamplingParams SamplingParams::from_json(const json& json) {
  if (!json.is_object()) throw base::InputError(base::expectation("sampling", "an object", shown(json)));
  SamplingParams params;
  for (const auto& [key, value] : json.items()) find_field(key).read(params, key, value);
  if (params.min_tokens > params.max_tokens)
    reject("min_tokens", fmt::format("at most max_tokens, {}", params.max_tokens), params.min_tokens);
  return params;
}

std::optional<LogitBias> parse_logit_bias(const json& json) {
  if (!json.is_object()) return std::nullopt;
  LogitBias bias;
  for (const auto& [key, value] : json.items()) {
    int32_t id = -1;
    const char* end = key.data() + key.size();
    const auto [rest, error] = std::from_chars(key.data(), end, id);
    const bool good = error == std::errc() && rest == end && id >= 0 && value.is_number();
    if (!good || !(std::abs(value.get<double>()) <= kMostLogitBias)) return std::nullopt;
    bias[id] = value.get<double>();
  }
  return bias;
}

}  // namespace collimate::generate

#include <charconv>
#include <cmath>

#include "collimate/base/error.h"
#include "collimate/generate/sampling_fields.h"
#include "collimate/text/utf8.h"

namespace collimate::generate {
namespace {

using nlohmann::json;

std::string shown(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

[[noreturn]] void reject(const std::string& key, const std::string& expected, const json& got) {
  throw base::InputError(base::expectation("sampling." + key, expected, shown(got)));
}

// Returns the limit as text without an exponent: 1e9 is 1000000000.
std::string limit_text(double limit) {
  return limit == std::floor(limit) ? fmt::format("{:.0f}", limit) : fmt::to_string(limit);
}
std::string limit_text(int64_t limit) { return fmt::to_string(limit); }

template <class T>
std::string range_text(const SamplingNumber<T>& number) {
  const std::string low = limit_text(number.low);
  const std::string range = number.limited()
                                ? fmt::format("in {}{}, {}]", number.above ? '(' : '[', low, limit_text(number.high))
                                : (number.above ? "> " : ">= ") + low;
  return number.smallest > 0 ? fmt::format("{}, 0 or at least {}", range, number.smallest) : range;
}

double value_from(const std::string& key, const json& value, const SamplingNumber<double>& number) {
  if (!value.is_number() || !number.holds(value.get<double>())) reject(key, "a number " + range_text(number), value);
  return value.get<double>();
}

int64_t value_from(const std::string& key, const json& value, const SamplingNumber<int64_t>& number) {
  const bool fits = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() >> 63 != 0);
  if (!fits || !number.holds(value.get<int64_t>())) reject(key, "an integer " + range_text(number), value);
  return value.get<int64_t>();
}

bool value_from(const std::string& key, const json& value, const SamplingMember<bool>&) {
  if (!value.is_boolean()) reject(key, "true or false", value);
  return value.get<bool>();
}

uint64_t value_from(const std::string& key, const json& value, const SamplingMember<uint64_t>&) {
  if (!value.is_number_integer()) reject(key, "an integer", value);
  return value.get<uint64_t>();
}

LogitBias value_from(const std::string& key, const json& value, const SamplingMember<LogitBias>&) {
  if (auto bias = parse_logit_bias(value)) return *bias;
  reject(key, "an object of token ids and numbers in [-100, 100]", value);
}

std::vector<int32_t> value_from(const std::string& key, const json& value,
                                const SamplingMember<std::vector<int32_t>>&) {
  if (!value.is_array()) reject(key, "a list of token ids", value);
  constexpr SamplingNumber<int64_t> kTokenId{nullptr, 0, kLargestTokenId};
  std::vector<int32_t> ids;
  for (const json& id : value) ids.push_back(static_cast<int32_t>(value_from(key, id, kTokenId)));
  return ids;
}

// Reads one string, or a list of strings.
std::vector<std::string> value_from(const std::string& key, const json& value,
                                    const SamplingMember<std::vector<std::string>>&) {
  const json list = value.is_array() ? value : json::array({value});
  for (const json& entry : list) {
    const bool good = entry.is_string() && !entry.get_ref<const std::string&>().empty() &&
                      text::is_valid_utf8(entry.get_ref<const std::string&>());
    if (!good) reject(key, "texts in UTF-8 that are not empty", entry);
  }
  return list.get<std::vector<std::string>>();
}

std::string value_from(const std::string& key, const json& value, const SamplingMember<std::string>&) {
  if (!value.is_string() || !text::is_valid_utf8(value.get_ref<const std::string&>()))
    reject(key, "a text in UTF-8", value);
  return value.get<std::string>();
}

const SamplingField& find_field(const std::string& key) {
  std::string known;
  for (const SamplingField& field : kSamplingFields) {
    if (key == field.name) return field;
    known += (known.empty() ? "" : ", ") + std::string(field.name);
  }
  throw base::InputError(base::expectation("sampling", "one of " + known, key));
}

template <class T>
json as_json(const T& value) {
  return value;
}
json as_json(const LogitBias& bias) {
  json out = json::object();
  for (const auto& [id, value] : bias) out[std::to_string(id)] = value;
  return out;
}

}  // namespace

json SamplingParams::to_json() const {
  const SamplingParams defaults;
  json out = json::object();
  for (const SamplingField& field : kSamplingFields) {
    const auto write = [&](const auto& member) {
      if (field.always || this->*member.at != defaults.*member.at) out[field.name] = as_json(this->*member.at);
    };
    std::visit(write, field.member);
  }
  return out;
}

SamplingParams SamplingParams::from_json(const json& json) {
  if (!json.is_object()) throw base::InputError(base::expectation("sampling", "an object", shown(json)));
  SamplingParams params;
  for (const auto& [key, value] : json.items()) {
    const auto read = [&params, &key = key, &value = value](const auto& member) {
      params.*member.at = value_from(key, value, member);
    };
    std::visit(read, find_field(key).member);
  }
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

#pragma once

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "collimate/generate/sampling_fields.h"

// Values of every field of kSamplingFields.
namespace collimate::generate::testing_support {

inline double next_below(double x) { return std::nextafter(x, -HUGE_VAL); }
inline double next_above(double x) { return std::nextafter(x, HUGE_VAL); }
inline int64_t next_below(int64_t x) { return x - 1; }
inline int64_t next_above(int64_t x) { return x + 1; }

// A value that is allowed and not the default.
template <class T>
nlohmann::json other_value(const SamplingNumber<T>& number) {
  if (number.holds(T(0.5)) && T(0.5) != SamplingParams().*number.at) return T(0.5);
  return T(3);
}
inline nlohmann::json other_value(const SamplingMember<bool>&) { return true; }
inline nlohmann::json other_value(const SamplingMember<uint64_t>&) { return 7; }
inline nlohmann::json other_value(const SamplingMember<LogitBias>&) { return {{"7", -3.0}, {"8", 0.5}}; }
inline nlohmann::json other_value(const SamplingMember<std::vector<int32_t>>&) { return {3, 4}; }
inline nlohmann::json other_value(const SamplingMember<std::vector<std::string>>&) { return {"5", "x"}; }
inline nlohmann::json other_value(const SamplingMember<std::string>&) { return "{}"; }

// The values that the field may have depend on the tokenizer too.
inline bool is_form(const SamplingField& field) {
  return std::holds_alternative<SamplingMember<std::string>>(field.member);
}

inline nlohmann::json other_value(const SamplingField& field) {
  return std::visit([](const auto& member) { return other_value(member); }, field.member);
}

// Values at and beside its limits, and whether they are allowed.
using Probes = std::vector<std::pair<nlohmann::json, bool>>;

template <class T>
Probes probes(const SamplingNumber<T>& number) {
  Probes out = {
      {number.low, !number.above}, {next_below(number.low), false}, {next_above(number.low), number.smallest == 0}};
  if (number.smallest > 0) {
    out.emplace_back(number.smallest, true);
    out.emplace_back(next_below(number.smallest), false);
  }
  if (!number.limited()) return out;
  out.emplace_back(number.high, true);
  out.emplace_back(next_above(number.high), false);
  return out;
}
template <class T>
Probes probes(const SamplingMember<T>& member) {
  return {{other_value(member), true}, {nlohmann::json::array({nullptr}), false}};
}

inline Probes probes(const SamplingField& field) {
  return std::visit([](const auto& member) { return probes(member); }, field.member);
}

}  // namespace collimate::generate::testing_support

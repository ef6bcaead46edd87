#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/error.h"

namespace collimate::shape {

// These are the largest numbers that a config.json may name.
constexpr int64_t kMaxCount = int64_t{1} << 24;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHidden = int64_t{1} << 20;

// Fields reads one config object by type. Every InputError names the file and the key.
class Fields {
 public:
  Fields(const nlohmann::json& config, std::string where) : config_(config), where_(std::move(where)) {}

  const std::string& where() const { return where_; }
  bool has(const char* key) const { return config_.contains(key) && !config_.at(key).is_null(); }
  bool is_null(const char* key) const { return config_.contains(key) && config_.at(key).is_null(); }
  std::string at(const std::string& key) const { return where_ + " " + key; }

  int64_t count(const char* key, int64_t limit) const {
    if (!has(key)) throw base::InputError(base::expectation(at(key), "a number", "nothing"));
    const nlohmann::json& value = config_.at(key);
    const bool good = value.is_number_integer() && !(value.is_number_unsigned() && value.get<uint64_t>() > kMaxCount) &&
                      value.get<int64_t>() >= 1 && value.get<int64_t>() <= limit;
    if (!good)
      throw base::InputError(
          base::expectation(at(key), fmt::format("a whole number from 1 to {}", limit), value.dump()));
    return value.get<int64_t>();
  }
  int64_t count_or(const char* key, int64_t limit, int64_t fallback) const {
    return has(key) ? count(key, limit) : fallback;
  }
  // Reads a whole number from 0 to `limit`.
  int64_t whole_or(const char* key, int64_t limit, int64_t fallback) const {
    return has(key) && config_.at(key) == 0 ? 0 : count_or(key, limit, fallback);
  }
  double real_or(const char* key, double fallback) const {
    if (!has(key)) return fallback;
    const nlohmann::json& value = config_.at(key);
    if (!value.is_number() || !(value.get<double>() > 0) || !std::isfinite(value.get<double>()))
      throw base::InputError(base::expectation(at(key), "a positive number", value.dump()));
    return value.get<double>();
  }
  bool flag_or(const char* key, bool fallback) const {
    if (!has(key)) return fallback;
    if (!config_.at(key).is_boolean())
      throw base::InputError(base::expectation(at(key), "true or false", config_.at(key).dump()));
    return config_.at(key).get<bool>();
  }
  // Throws InputError where a flag is not the one that the family supports, which is also its default.
  void require(const char* key, bool wanted) const {
    if (flag_or(key, wanted) != wanted)
      throw base::InputError(base::expectation(at(key), wanted ? "true" : "false", wanted ? "false" : "true"));
  }
  // Throws InputError where a text is not the one that the family supports, which is also its default.
  void require(const char* key, const char* wanted) const {
    if (const std::string text = text_or(key, wanted); text != wanted)
      throw base::InputError(base::expectation(at(key), wanted, "'" + text + "'"));
  }
  std::string text_or(const char* key, const std::string& fallback) const {
    if (!has(key)) return fallback;
    if (!config_.at(key).is_string())
      throw base::InputError(base::expectation(at(key), "a string", config_.at(key).dump()));
    return config_.at(key).get<std::string>();
  }
  int64_t id_or(const char* key, int64_t fallback) const {
    if (!has(key)) return fallback;
    if (!config_.at(key).is_number_integer())
      throw base::InputError(base::expectation(at(key), "a token id", config_.at(key).dump()));
    return config_.at(key).get<int64_t>();
  }
  const nlohmann::json& raw(const char* key) const { return config_.at(key); }

 private:
  const nlohmann::json& config_;
  std::string where_;
};

}  // namespace collimate::shape

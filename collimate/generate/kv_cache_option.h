#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/base/option_check.h"
#include "collimate/base/section.h"
#include "collimate/tensor/kv_type.h"

namespace collimate::generate {

// A type to which the cache may round keys and values, with the word by which a user asks for it.
struct RoundedCache {
  const char* word;
  tensor::KvType type;
};
inline constexpr RoundedCache kRoundedCaches[] = {{"int8", tensor::KvType::kInt8}, {"fp8", tensor::KvType::kFp8}};

inline bool is_rounded(tensor::KvType type) {
  return std::ranges::any_of(kRoundedCaches, [&](const RoundedCache& cache) { return cache.type == type; });
}

// The option by which a user says, wherever something generates, to which type the cache rounds keys and values.
struct KvCacheOption : base::Option<std::string> {
  explicit KvCacheOption(base::Section* section)
      : Option(section, "kv_cache_dtype", "auto", "",
               "how the cache of generation keeps keys and values: auto as the model computes them; int8 and fp8 need "
               "about a quarter of float32's memory and change log-probs",
               base::one_of(words())) {}

  // Returns the value for ServiceOptions::kv_type.
  std::optional<tensor::KvType> type() const {
    for (const RoundedCache& cache : kRoundedCaches)
      if (get() == cache.word) return cache.type;
    return std::nullopt;
  }

 private:
  static std::vector<std::string> words() {
    std::vector<std::string> all = {"auto"};
    for (const RoundedCache& cache : kRoundedCaches) all.emplace_back(cache.word);
    return all;
  }
};

}  // namespace collimate::generate

#pragma once

#include <optional>
#include <string>

#include "collimate/base/option.h"
#include "collimate/base/option_check.h"
#include "collimate/base/section.h"
#include "collimate/tensor/kv_type.h"

namespace collimate::generate {

// A user says so, wherever something generates, to what the cache rounds keys and values.
struct KvCacheOption : base::Option<std::string> {
  explicit KvCacheOption(base::Section* section)
      : Option(section, "kv_cache_dtype", "auto", "",
               "how the cache of generation keeps keys and values: auto as the model computes them; int8 and fp8 need "
               "about a quarter of float32's memory and change log-probs",
               base::one_of({"auto", "int8", "fp8"})) {}

  // ServiceOptions::kv_type.
  std::optional<tensor::KvType> type() const {
    if (get() == "auto") return std::nullopt;
    return get() == "int8" ? tensor::KvType::kInt8 : tensor::KvType::kFp8;
  }
};

}  // namespace collimate::generate

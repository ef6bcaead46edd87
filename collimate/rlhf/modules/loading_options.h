#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "collimate/base/option.h"
#include "collimate/base/option_check.h"
#include "collimate/base/section.h"
#include "collimate/tensor/compute_type.h"

namespace collimate::rlhf {

// These options say how a model is loaded, to be trained, served or talked to. A model that is only served or talked to
// has tensor::inference_type_words() as number types.
struct ComputeOption : base::Option<std::string> {
  explicit ComputeOption(base::Section* parent, const std::vector<std::string>& words = tensor::compute_type_words())
      : Option(parent, "compute", "float32", "", "number type in which linear layers multiply", base::one_of(words)) {}
};

struct ReductionChunksOption : base::Option<int64_t> {
  explicit ReductionChunksOption(base::Section* parent)
      : Option(
            parent, "reduction_chunks", 1, "",
            "into how many pieces of its inputs a linear layer's sums are cut: any tp that divides it gives the same "
            "bits",
            base::satisfying("1, 2, 4 or 8", [](int64_t n) { return n == 1 || n == 2 || n == 4 || n == 8; })) {}
};

struct LatentCacheOption : base::Option<bool> {
  explicit LatentCacheOption(base::Section* parent)
      : Option(parent, "latent_cache", false, "",
               "of a model with latent attention: the cache keeps latents, of which each step makes keys and values; "
               "much smaller and slower, with the same results") {}
};

struct ChatTemplateOption : base::Option<std::string> {
  explicit ChatTemplateOption(base::Section* parent)
      : Option(parent, "chat_template", "auto", "",
               "how messages become text; auto: by the model's own template, or contents joined where it has none",
               base::one_of({"auto", "chatml", "plain", "user-bot"})) {}
};

struct ChatTemplateKwargsOption : base::Option<nlohmann::json> {
  explicit ChatTemplateKwargsOption(base::Section* parent)
      : Option(parent, "chat_template_kwargs", nlohmann::json::object(), "",
               "variables of the chat template, as {enable_thinking: false}; a row's or request's own go before these",
               base::Check<nlohmann::json>{"an object", [](const nlohmann::json& v) { return v.is_object(); }}) {}
};

// Say how messages become text.
struct ChatTemplateOptions {
  explicit ChatTemplateOptions(base::Section* parent) : choice(parent), kwargs(parent) {}

  ChatTemplateOption choice;
  ChatTemplateKwargsOption kwargs;
};

}  // namespace collimate::rlhf

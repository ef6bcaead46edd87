#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "collimate/base/option.h"
#include "collimate/base/section.h"
#include "collimate/model/model.h"
#include "collimate/model/rounding.h"
#include "collimate/tensor/exec.h"
#include "collimate/text/tokenizer.h"

namespace collimate::cli {

struct MeasureInt8Option : base::Option<bool> {
  explicit MeasureInt8Option(base::Section* parent)
      : Option(parent, "measure_int8", true, "",
               "with compute int8, compare log-probs with float32's while loading; for that time the weights take the "
               "memory of float32") {}
};

// An Int8Error says how far int8 weights differ from float32 weights.
struct Int8Error {
  model::RoundingReport weights;
  // |int8's log-prob - float32's|, in nats, of tokens that the float32 model draws by itself at temperature 1.
  double log_prob_mean = 0, log_prob_max = 0;
  int64_t tokens = 0;  // number of tokens compared; 0: not measured
};

// Measures and logs the error of an int8 model; returns nothing for a model that computes in another type. With
// `log_probs` false only the weights are compared. The probe is a set of short texts that the float32 model draws with
// a fixed seed after a first token (bos, else eos, else id 0): it needs no data, exists for every vocabulary, and is
// what the model's reported log-probs are about. The model is unchanged afterwards.
std::optional<Int8Error> measured_int8(model::Model& model, const tensor::Exec& exec, const text::Tokenizer& tokenizer,
                                       bool log_probs);

nlohmann::ordered_json to_json(const Int8Error& error);

}  // namespace collimate::cli

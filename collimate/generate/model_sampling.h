#pragma once

#include <string>

#include "collimate/generate/sampling_options.h"

namespace collimate::generate {

// Says which options of sampling a model's generation_config.json has set.
struct ModelSampling {
  std::string file;    // its path
  std::string values;  // "temperature 0.6, top_p 0.9"; "" where it has set none
};

// Gives each option that the user has not set the value of generation_config.json, which lies in the model's directory
// or in that of the base model of its adapters: temperature, top_p, top_k (-1, vLLM's word for all, counts as 0), min_p
// and repetition_penalty. Where do_sample is false, as transformers writes it, the most likely token is taken: the
// temperature is 0. Other keys and null are ignored. Throws InputError, which names the file and the key, for a value
// that the option does not take.
ModelSampling take_model_sampling(const std::string& directory, SamplingOptions& options);

}  // namespace collimate::generate

#pragma once

#include <nlohmann/json.hpp>

namespace collimate::python {

// {"model", "data": a file of prompts, "max_tokens", "n", "seed", "logprobs"} and the keys of
// generate::SamplingOptions, compute, chat_template, speculation, speculation_tokens and draft_model. Gives a list of
// {"prompt", "completion", "token_ids", "finish"} and, where asked, "logprobs", in order of prompt, then sample.
// Blocking. InputError for wrong keys and values, a directory that is no model's and rows without a prompt.
nlohmann::ordered_json generate(const nlohmann::json& request);

}  // namespace collimate::python

#pragma once

#include <nlohmann/json.hpp>

namespace collimate::python {

// Completes prompts. The request is {"model", "data": a file of prompts, "max_tokens", "n", "seed", "logprobs",
// "download", "long_rows", "bad_rows"} with the keys of cli::CompletionOptions, such as those of
// generate::SamplingOptions, compute, chat_template and speculation. Returns a list of {"prompt", "completion",
// "token_ids", "finish"}, with "score" after a search and "logprobs" if asked for, in order of prompt, then sample, or
// {"signal", "message"} after SIGINT or SIGTERM. Blocks. Throws InputError for wrong keys and values, a directory that
// is no model's and rows without a prompt, and RunError while another call is going on in the process.
nlohmann::ordered_json generate(const nlohmann::json& request);

}  // namespace collimate::python

#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/generate/sampling.h"

namespace collimate::serve {

// Is it a field that says what an answer has to be? OpenAI's response_format; vLLM's structured_outputs, and the names
// that it had before: guided_json, guided_regex and guided_choice.
bool is_form_field(const std::string& name);
// Has a request's body one?
bool has_form(const nlohmann::json& fields);

// Reads those fields of a request's body, whose schemas keep the order of their properties. ApiError 400, naming the
// field: of the wrong type, not offered here, or more than one form. What a schema or an expression says is the
// service's to check.
void read_form(const nlohmann::ordered_json& fields, generate::SamplingParams& sampling);

}  // namespace collimate::serve

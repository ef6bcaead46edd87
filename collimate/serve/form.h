#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/generate/sampling.h"

namespace collimate::serve {

// Returns whether a field says what form an answer must have: OpenAI's response_format, vLLM's structured_outputs, or
// vLLM's older names guided_json, guided_regex and guided_choice.
bool is_form_field(const std::string& name);
// Returns whether a request's body has such a field.
bool has_form(const nlohmann::json& fields);

// Reads the form fields of a request's body; schemas keep the order of their properties. Throws ApiError 400, naming
// the field, for a value of the wrong type, a form not offered here, or more than one form. The service checks later
// whether a schema or an expression itself is valid.
void read_form(const nlohmann::ordered_json& fields, generate::SamplingParams& sampling);

}  // namespace collimate::serve

#pragma once

#include <nlohmann/json.hpp>

#include "collimate/serve/api.h"

namespace collimate::serve {

// Reads a chat's messages, tools and template variables from a request's fields. `written` has the same fields with
// keys in the order of the request, in which templates show the keys of tools and calls. Throws ApiError 400, naming
// the field.
void read_chat(ApiRequest& request, const nlohmann::json& fields, const nlohmann::ordered_json& written);

}  // namespace collimate::serve

#pragma once

#include <nlohmann/json.hpp>

#include "collimate/serve/api.h"

namespace collimate::serve {

// Reads a chat's messages and tools, and what its template is given, from a request's fields. `written` has them in
// the order in which they came: templates show the keys of tools and calls so. ApiError 400, naming the field.
void read_chat(ApiRequest& request, const nlohmann::json& fields, const nlohmann::ordered_json& written);

}  // namespace collimate::serve

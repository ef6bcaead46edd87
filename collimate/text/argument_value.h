#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::text {

// Returns the text without blanks around it if it is JSON of at most base::kMaxJsonDepth levels, so that numbers keep
// their digits; else nothing. Two things that Python's json.loads accepts too are mended: half of a surrogate pair
// becomes U+FFFD, and of a key given twice the last value stays, for which the whole text is written anew.
std::optional<std::string> json_text(std::string_view written);

// Returns the JSON of an argument that a model wrote without quotes, read by the schema of its parameter. The first
// type that the schema allows and that fits is taken, in the order null, integer, number, boolean, object or array,
// string, as vLLM's parsers do (tests/golden/make_arguments.py). Python's True, False and None are accepted as well.
std::string argument_value(std::string_view written, const nlohmann::ordered_json& schema);

}  // namespace collimate::text

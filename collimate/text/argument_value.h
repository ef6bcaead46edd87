#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace collimate::text {

// The text without blanks around it, where it is JSON of at most base::kMaxJsonDepth levels, so that numbers keep their
// digits. Two things that Python's json.loads reads too are mended: half of a surrogate pair becomes U+FFFD, and of a
// key given twice the last value stays, which writes the text anew.
std::optional<std::string> json_text(std::string_view written);

// JSON of an argument that a model wrote without quotes, by the schema of its parameter. The first of null, integer,
// number, boolean, object or array, and string that the schema allows and that fits is taken, as vLLM's parsers do
// (tests/golden/make_arguments.py); True, False and None of Python are taken as well.
std::string argument_value(std::string_view written, const nlohmann::ordered_json& schema);

}  // namespace collimate::text

#pragma once

#include <optional>
#include <string>
#include <vector>

namespace collimate::text {

// An outline is what a chat template's Jinja text says, whatever its spelling: one entry for each statement ("%" and
// its code) and for each stretch of output between two statements ("=" and its text, in which what is no literal stands
// as kExpressionMark CODE kExpressionMark). White space is controlled as Hugging Face's transformers do (trim_blocks
// and lstrip_blocks). Alike are: quotes ' and ", x['y'] and x.y, + and ~ between parts, text outside of tags and
// literals, and all names of the variable that runs over the messages (here "message").
using JinjaOutline = std::vector<std::string>;
inline constexpr char kExpressionMark = '\x01';

// nullopt for what is not read: a tag or a quote that is not closed, raw blocks, escapes beyond \n \r \t \\ \' \".
std::optional<JinjaOutline> jinja_outline(std::string jinja);

}  // namespace collimate::text

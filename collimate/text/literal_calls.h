#pragma once

#include <string_view>
#include <vector>

#include "collimate/text/call_body.h"

namespace collimate::text {

// Calls whose arguments are literals of another language than JSON. None where the text says anything else; values nest
// no deeper than JSON's may.

// [NAME(KEY='text', KEY=1, KEY=[True, None]), NAME()]: calls in Python, as of LFM2. Texts have Python's escapes; values
// of JSON (true, null, "text") are read too.
std::vector<ToolCall> python_calls(std::string_view text);

// call:NAME{KEY:<|"|>text<|"|>,KEY:1,KEY:{KEY:[true]}}: one call of Gemma 4.
std::vector<ToolCall> gemma_call(std::string_view text);

// Stands around a text of Gemma 4.
inline constexpr std::string_view kGemmaQuote = "<|\"|>";

}  // namespace collimate::text

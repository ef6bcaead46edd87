#pragma once

#include <string_view>
#include <vector>

#include "collimate/text/call_body.h"

namespace collimate::text {

// These functions read calls whose arguments are literals of another language than JSON. They return none where the
// text says anything else; values nest no deeper than JSON's may.

// Reads [NAME(KEY='text', KEY=1, KEY=[True, None]), NAME()]: calls in Python, as LFM2 writes them. Texts have Python's
// escapes; values of JSON (true, null, "text") are read too.
std::vector<ToolCall> python_calls(std::string_view text);

// Reads call:NAME{KEY:<|"|>text<|"|>,KEY:1,KEY:{KEY:[true]}}: one call of Gemma 4.
std::vector<ToolCall> gemma_call(std::string_view text);

// Gemma 4 writes this mark before and behind a text.
inline constexpr std::string_view kGemmaQuote = "<|\"|>";

}  // namespace collimate::text

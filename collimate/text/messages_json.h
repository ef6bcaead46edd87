#pragma once

#include <string>

#include "collimate/text/chat_template.h"
#include "collimate/text/rows.h"

namespace collimate::text {

// [{role, content}] (content a text, or a list of {type: "text", text}), or [{from, value}] with sharegpt's names:
// human → user, gpt and function_call → assistant, observation → tool. `where` names file, row and column.
// Throws InputError for anything else: a content of null, and calls of tools beside the content (`tool_calls`,
// `function_call`; null or empty ones are none).
Messages messages_from_json(const nlohmann::json& json, const std::string& where);
Message message_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace collimate::text

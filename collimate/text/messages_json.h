#pragma once

#include <string>

#include "collimate/text/chat_template.h"
#include "collimate/text/rows.h"

namespace collimate::text {

// Read [{role, content}] (content is a text, or a list of {type: "text", text}), or [{from, value}] with sharegpt's
// names: human → user, gpt and function_call → assistant, observation → tool. Beside the content, tool_calls,
// tool_call_id, name and reasoning_content (also called thinking or reasoning) are kept; a message with calls needs no
// content. A call is {type, function: {name, arguments}}, or the object under function alone; arguments are an object,
// or its JSON as a text. `where` names file, row and column. Both throw InputError for anything else.
Messages messages_from_json(const nlohmann::ordered_json& json, const std::string& where);
Message message_from_json(const nlohmann::ordered_json& json, const std::string& where);
// Returns a message as message_from_json reads it.
nlohmann::ordered_json message_json(const Message& message);

// Reads a list of definitions, or its JSON as a text; null where there is none. A definition is an object whose
// function, if it has one, is an object with a text as its name. Throws InputError for anything else.
nlohmann::ordered_json tools_from_json(const nlohmann::ordered_json& json, const std::string& where);
// Reads an object, or its JSON as a text; null for an empty one. Throws InputError for anything else.
nlohmann::ordered_json variables_from_json(const nlohmann::ordered_json& json, const std::string& where);

}  // namespace collimate::text

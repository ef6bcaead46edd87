#pragma once

#include <string>

#include "collimate/text/conversation.h"

namespace collimate::text {

// Returns the thoughts of an answer, without blanks around them: its reasoning_content, or the part of its content
// before </think>, from behind <think> or, where the prompt has opened the thoughts, from the beginning. Returns "" for
// none.
std::string thoughts_of(const Message& answer);

}  // namespace collimate::text

#pragma once

#include <string>

#include "collimate/text/conversation.h"

namespace collimate::text {

// The thoughts of an answer, without blanks around them: its reasoning_content, or what its content has up to
// </think>, which <think> may open or the prompt; "" for none.
std::string thoughts_of(const Message& answer);

}  // namespace collimate::text

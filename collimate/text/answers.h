#pragma once

#include <string>
#include <vector>

#include "collimate/text/conversation.h"

namespace collimate::text {

class ChatTemplate;
class Tokenizer;

// One turn of the assistant in the text of a conversation.
struct Answer {
  std::string before;  // the text between the previous answer and this one, this turn's header included
  std::string said;    // the text that the model says
  std::string mark;    // the text that ends the turn, "" where nothing does
  bool calls = false;  // the turn calls tools
};

// Finds the assistant's turns in the text that a template writes for a whole conversation, where the template writes a
// turn in another way once other turns follow. To see where a content stands, it renders the conversation again with a
// word in its place that no text has; to see where a turn's header ends, it renders the prompt of that turn. Text after
// the last turn belongs to that turn's mark. With `last_only` it returns the last turn alone. Throws InputError for a
// turn that has no place in the text, or more than one.
std::vector<Answer> find_answers(const ChatTemplate& chat, const Tokenizer& tokenizer, const Conversation& conversation,
                                 bool last_only);

}  // namespace collimate::text

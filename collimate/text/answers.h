#pragma once

#include <string>
#include <vector>

#include "collimate/text/conversation.h"

namespace collimate::text {

class ChatTemplate;
class Tokenizer;

// One turn of the assistant in the text of a conversation.
struct Answer {
  std::string before;  // what stands between it and the answer before, its own header included
  std::string said;    // what a model says
  std::string mark;    // what ends the turn, "" where nothing does
  bool calls = false;  // of tools
};

// Finds the assistant's turns in what a template writes of a whole conversation, for one that writes a turn in another
// way once others follow: the conversation is written again with a word that no text has in the place of a content,
// which shows where the content stands, and by the prompt of each turn, which shows where its header ends. The text
// after the last turn belongs to its mark. Of the last turn alone with `last_only`. InputError where that leaves more
// than one place, or none.
std::vector<Answer> find_answers(const ChatTemplate& chat, const Tokenizer& tokenizer, const Conversation& conversation,
                                 bool last_only);

}  // namespace collimate::text

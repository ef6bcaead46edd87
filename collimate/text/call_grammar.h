#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/call_body.h"
#include "collimate/text/tokenizer.h"

namespace collimate::text {

// Says which tool calls an answer has to consist of.
struct CallRule {
  CallForm form = CallForm::kUnknown;
  nlohmann::ordered_json tools;  // definitions of the tools that may be called, at least one
  bool several = false;          // one call or more, else exactly one
  bool thinking = false;         // the prompt has opened the thoughts
};

// Returns whether a grammar can ask for such calls: their form is JSON between texts, and none of the form's marks is a
// special token.
bool can_ask_for_calls(CallForm form, const Tokenizer& tokenizer);

// Returns the grammar (TextRule::Kind::kGrammar) of answers that consist of such calls alone. Thoughts (<think> …
// </think>) come first where the prompt has opened them, and may come first where the tokenizer has a token <think>.
// Arguments follow a tool's parameters, which are a JSON schema. Throws InputError, which names `name`, for parameters
// that are none.
std::string call_grammar(const CallRule& rule, const Tokenizer& tokenizer, const std::string& name);

}  // namespace collimate::text

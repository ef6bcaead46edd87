#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/call_body.h"
#include "collimate/text/tokenizer.h"

namespace collimate::text {

// Says which calls an answer has to be.
struct CallRule {
  CallForm form = CallForm::kUnknown;
  nlohmann::ordered_json tools;  // definitions of those that may be called, at least one
  bool several = false;          // one call or more, else one
  bool thinking = false;         // the prompt has opened the thoughts
};

// Whether such calls can be asked for: their form is JSON between texts, and none of the texts is a special token.
bool can_ask_for_calls(CallForm form, const Tokenizer& tokenizer);

// The grammar (TextRule::Kind::kGrammar) of answers that are such calls and nothing else, but for thoughts
// (<think> … </think>) ahead of them where the prompt has opened these or the tokenizer has a token for them. Arguments
// are what a tool's parameters, a schema, allow. InputError naming `name` for parameters that are no schema.
std::string call_grammar(const CallRule& rule, const Tokenizer& tokenizer, const std::string& name);

}  // namespace collimate::text

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/call_body.h"

namespace collimate::text {

// Found where the text has a call of `name`: by what stands around it. `opening`: the text before the turn.
CallForm call_form_of(std::string_view text, std::string_view opening, std::string_view name);

// Reads calls out of the text of an answer as it comes. What may be the beginning of a call is held back; what turns
// out to be none is text, unchanged. Beside a call, white space before and after it is left out.
class CallReader {
 public:
  struct Read {
    std::string text;
    std::vector<ToolCall> calls;
  };

  // `tools`: the definitions of those that may be called; something else is no call.
  CallReader(CallForm form, nlohmann::ordered_json tools);

  // `last`: nothing follows.
  Read read(std::string_view text, bool last);
  bool any() const { return any_; }

 private:
  void read_tagged(Read& read, bool last);
  void read_alone(Read& read, bool last);
  bool take_call(std::string_view body, Read& read);
  bool may_begin(std::string_view answer) const;
  bool known(const std::vector<ToolCall>& calls) const;

  CallForm form_;
  nlohmann::ordered_json tools_;
  std::vector<std::string> names_;
  std::string held_;
  bool any_ = false;
  bool text_begun_ = false;
};

}  // namespace collimate::text

#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/call_body.h"
#include "collimate/text/harmony.h"
#include "collimate/text/tokenizer.h"

namespace collimate::text {

// Returns the form in which the text has a call of `name`, found by what stands around the name; kUnknown where it has
// none. `opening` is the text before the turn.
CallForm call_form_of(std::string_view text, std::string_view opening, std::string_view name);

// Returns the special tokens that a reader of the form must see as text.
std::vector<int32_t> call_token_ids(CallForm form, const Tokenizer& tokenizer);

// Reads calls out of the text of an answer as it comes. Text that may begin a call is held back; if it turns out to be
// no call it is shown unchanged, and calls behind it are read. White space before and after a call is left out. Calls
// without marks stand at the beginning or behind another call; thoughts (<think> … </think>) that the answer begins
// with hold no calls. For an answer in harmony see HarmonyReader.
class CallReader {
 public:
  using Read = AnswerPart;

  // `tools` holds the definitions of those that may be called; a call of anything else is text. `thinking` says that
  // the prompt has opened the thoughts.
  CallReader(CallForm form, nlohmann::ordered_json tools, bool thinking = false);

  // Reads a text and returns what is certain by now. With `last` nothing follows.
  Read read(std::string_view text, bool last);
  bool any() const { return any_ || harmony_.any(); }

 private:
  struct Place {
    size_t body, end;  // of a call and of all up to its end, in bytes from behind the mark ahead
  };
  bool show_thoughts(Read& read, bool last);
  bool show_text(Read& read);
  void show(size_t size, Read& read);
  void read_calls(Read& read, bool last);
  std::optional<Place> place_of_call(std::string_view text, bool last) const;
  bool may_begin(std::string_view text) const;
  bool take_call(std::string_view body, Read& read);

  CallForm form_;
  nlohmann::ordered_json tools_;
  std::vector<std::string> names_;
  HarmonyReader harmony_;
  std::string mark_;  // opens calls
  std::string held_;
  bool alone_;   // no mark is needed
  bool begins_;  // what is held may begin with a call
  bool thinking_, begun_;
  bool any_ = false;
};

}  // namespace collimate::text

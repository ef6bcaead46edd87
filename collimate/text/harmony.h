#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collimate/text/call_body.h"

namespace collimate::text {

// Harmony is how gpt-oss writes a turn: as messages to several channels, each of them a header and a content (OpenAI's
// "Harmony response format").
namespace harmony {

inline constexpr std::string_view kStart = "<|start|>", kChannel = "<|channel|>", kConstrain = "<|constrain|>",
                                  kMessage = "<|message|>", kEnd = "<|end|>", kCall = "<|call|>",
                                  kReturn = "<|return|>", kRecipient = " to=";

// The parts of a header, such as "assistant to=functions.add<|channel|>commentary <|constrain|>json", in whatever order
// they come.
struct Header {
  std::string_view role, channel, recipient;  // empty where there is none
  std::string function() const;               // the recipient without "functions."
};
Header header_of(std::string_view text);

}  // namespace harmony

// Returns how many bytes at the end of `text` may be the beginning of `mark`, always fewer than `mark` has.
size_t begun_size(std::string_view text, std::string_view mark);

// Reads an answer in harmony as it comes, behind a prompt that ends with <|start|>assistant. The assistant's messages
// of the channel "analysis" are thoughts, those with a recipient are calls, and others are the content; each further
// message of a kind begins on a line of its own. A message that is none of these, or that calls none of the functions
// `names`, becomes content as it was written, marks included; so does an answer without marks.
class HarmonyReader {
 public:
  explicit HarmonyReader(std::vector<std::string> names) : names_(std::move(names)) {}

  // Reads a text and returns what is certain by now. With `last` nothing follows.
  AnswerPart read(std::string_view text, bool last);
  bool any() const { return any_; }  // some call has been read

 private:
  enum class Place { kBeginning, kBetween, kHeader, kThoughts, kContent, kWhole };
  bool find_message(AnswerPart& part, bool last);
  bool read_header(AnswerPart& part, bool last);
  bool read_content(AnswerPart& part, bool last);
  Place place_of(const harmony::Header& header) const;
  std::string take(size_t size);
  void add_line(std::string& out, bool& said, std::string_view text);

  std::vector<std::string> names_;
  std::string held_;
  std::string header_;  // header of the message that is being read, as it was written
  Place place_ = Place::kBeginning;
  bool said_ = false, thought_ = false;  // a message of this kind has shown a text
  bool opens_ = false;                   // the message that is being read has shown nothing yet
  bool any_ = false;
};

}  // namespace collimate::text

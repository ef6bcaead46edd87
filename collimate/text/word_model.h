#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

// Turns words into ids: the model of a tokenizer. Immutable; may be used by several threads.
class WordModel {
 public:
  virtual ~WordModel() = default;
  // Appends the ids of a word, which is not empty. Throws InputError for text that the vocabulary cannot express, where
  // the model neither has unk nor drops such text.
  virtual void encode(std::string_view word, std::vector<int32_t>& ids) const = 0;
  // Returns "BPE", "Unigram" and the like, which a reader is told.
  virtual std::string kind() const = 0;
  // Returns whether a text has the same ids as its parts, cut before every run of U+2581 (space_marks.h).
  virtual bool falls_apart_at_marks() const { return false; }
};

// Throws the InputError for text that a vocabulary without unk cannot express; `where` names the tokenizer.
[[noreturn]] void cannot_express(const std::string& where, std::string_view bytes);

}  // namespace collimate::text

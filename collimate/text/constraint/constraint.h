#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/text/tokenizer.h"

namespace collimate::text {

// Says what a text has to be. A regular expression has to match it as a whole (Rust's syntax: neither look-around nor
// back-references). A schema has to allow it as a JSON value, with at most two line ends and 20 blanks between its
// parts, unless the schema's "x-guidance" says "whitespace_flexible" or "whitespace_pattern". A grammar, in the
// engine's dialect of Lark, has to produce it.
struct TextRule {
  enum class Kind : uint8_t { kRegex, kJsonSchema, kGrammar };
  Kind kind = Kind::kRegex;
  std::string text;  // the expression, the schema or the grammar
  auto operator<=>(const TextRule&) const = default;
};

// Returns a schema under which no model can write blanks for ever: between the parts of its documents stand at most two
// line ends and then 20 blanks (the bound of llama.cpp's grammars), unless `schema` says itself what may stand there.
// Throws InputError, which calls it `name`, for malformed JSON and for two equal keys, of which the engine would take
// the later.
std::string with_bounded_blanks(const std::string& schema, const std::string& name);

// Says which tokens may follow in one text under one rule. The answer depends on the tokens so far alone; the object
// remembers where it was, so that going on from there, or back a few tokens, is cheap. Not thread-safe.
class Constraint {
 public:
  virtual ~Constraint() = default;
  // Returns a mask: bit i % 32 of word i / 32 is set where token i may come after `tokens`, or, for an end token, where
  // the text may end there. The mask is empty where none may: these tokens break the rule, no token of the vocabulary
  // continues them, or the engine's limits of time and memory are reached. An answer after an end token means nothing.
  // Valid until the next call.
  virtual std::span<const uint32_t> allowed_after(std::span<const int32_t> tokens) = 0;
  // Returns why the last answer was empty, where the engine says so.
  virtual const std::string& problem() const = 0;
  // Returns another constraint of the same text. From here on each remembers only where it was asked itself.
  virtual std::unique_ptr<Constraint> copy() const = 0;
};

// Makes constraints for one vocabulary. Not thread-safe.
class Constrainer {
 public:
  // A text has tokens below `vocabulary` and ends with one of `end_ids`, of which at least one is below `vocabulary`.
  // No text has other special tokens.
  Constrainer(const Tokenizer& tokenizer, int64_t vocabulary, std::span<const int32_t> end_ids);
  ~Constrainer();

  // Makes a constraint, or copies one that has been made before. Throws InputError, which calls the rule `name`, for
  // what the engine does not take (a part of the syntax, a keyword of a schema, more states than its limits allow), and
  // for a rule that no text of this vocabulary begins to follow.
  std::unique_ptr<Constraint> make(const TextRule& rule, const std::string& name);

 private:
  class Vocabulary;
  class Followed;
  std::shared_ptr<Vocabulary> vocabulary_;
  std::map<TextRule, std::unique_ptr<Followed>> made_;
};

}  // namespace collimate::text

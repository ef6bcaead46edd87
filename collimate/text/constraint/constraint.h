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

// Says what a text has to be: one that a regular expression matches as a whole (Rust's syntax: neither look-around nor
// back-references), a JSON value that a schema allows, with at most two line ends and 20 blanks between its parts,
// unless the schema's "x-guidance" says "whitespace_flexible" or "whitespace_pattern", or a text of a grammar in the
// engine's dialect of Lark.
struct TextRule {
  enum class Kind : uint8_t { kRegex, kJsonSchema, kGrammar };
  Kind kind = Kind::kRegex;
  std::string text;  // of the expression, the schema or the grammar
  auto operator<=>(const TextRule&) const = default;
};

// A schema under which no model can write blanks for ever: between the parts of its documents stand at most two line
// ends and then 20 blanks (the bound of llama.cpp's grammars), unless it says itself what may stand there. InputError,
// which calls it `name`: the engine would take the later of two equal keys.
std::string with_bounded_blanks(const std::string& schema, const std::string& name);

// Says which tokens may follow, of one text under one rule. A function of the tokens so far; it remembers where it was,
// so that going on from there, or back a few tokens, is cheap. Not thread-safe.
class Constraint {
 public:
  virtual ~Constraint() = default;
  // Bit i % 32 of word i / 32 is set where token i may come after `tokens`, an end token where the text may end there.
  // Empty where none may: these tokens break the rule, no token of the vocabulary continues them, or the engine's
  // limits of time and memory are reached. What it says after an end token means nothing. Valid until the next call.
  virtual std::span<const uint32_t> allowed_after(std::span<const int32_t> tokens) = 0;
  // Why the last answer was empty, where the engine says so.
  virtual const std::string& problem() const = 0;
  // Another of the same text, from here on each is where it was asked itself.
  virtual std::unique_ptr<Constraint> copy() const = 0;
};

// Makes constraints for one vocabulary. Not thread-safe.
class Constrainer {
 public:
  // A text has tokens below `vocabulary`, of which `end_ids`, at least one, end it. Special tokens are part of none.
  Constrainer(const Tokenizer& tokenizer, int64_t vocabulary, std::span<const int32_t> end_ids);
  ~Constrainer();

  // One that has been made before is copied. InputError, which calls the rule `name`: what the engine does not take (a
  // part of the syntax, a keyword of a schema, more states than its limits allow), and a rule that no text of this
  // vocabulary begins to follow.
  std::unique_ptr<Constraint> make(const TextRule& rule, const std::string& name);

 private:
  class Vocabulary;
  class Followed;
  std::shared_ptr<Vocabulary> vocabulary_;
  std::map<TextRule, std::unique_ptr<Followed>> made_;
};

}  // namespace collimate::text

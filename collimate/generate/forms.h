#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/text/constraint/constraint.h"
#include "collimate/text/tokenizer.h"

namespace collimate::generate {

// Holds what completions of one model have to be, by their parameters (regex, json_schema). Not thread-safe.
class Forms {
 public:
  // `tokenizer`, null for none, outlives it. Token ids are below `vocabulary`.
  Forms(const text::Tokenizer* tokenizer, int64_t vocabulary, std::vector<int32_t> eos_ids);

  // Null for a completion that may be anything. InputError naming `where`: both are set, or beside one of them what
  // contradicts it (ignore_eos, min_tokens); no tokenizer, no end of sequence; what Constrainer::make refuses.
  std::shared_ptr<text::Constraint> make(const SamplingParams& params, const std::string& where);

 private:
  void check(const SamplingParams& params, const std::string& where, const std::string& given) const;

  const text::Tokenizer* tokenizer_;
  int64_t vocabulary_;
  std::vector<int32_t> eos_ids_;
  std::unique_ptr<text::Constrainer> constrainer_;  // made for the first that needs it
};

}  // namespace collimate::generate

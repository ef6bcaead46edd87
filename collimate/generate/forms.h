#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "collimate/generate/sampling.h"
#include "collimate/text/constraint/constraint.h"
#include "collimate/text/tokenizer.h"

namespace collimate::generate {

// Makes the constraints that give completions of one model the form that their parameters ask for (regex, json_schema
// or grammar). Not thread-safe.
class Forms {
 public:
  // `tokenizer`, which may be null, must outlive this. Token ids are below `vocabulary`.
  Forms(const text::Tokenizer* tokenizer, int64_t vocabulary, std::vector<int32_t> eos_ids);

  // Returns the constraint, or null if the completion may have any form. Throws InputError naming `where` if several
  // forms are set, if ignore_eos or min_tokens contradicts the form, if there is no tokenizer or no end-of-sequence
  // token, and for a form that Constrainer::make refuses.
  std::shared_ptr<text::Constraint> make(const SamplingParams& params, const std::string& where);

 private:
  void check(const SamplingParams& params, const std::string& where, const std::string& given) const;

  const text::Tokenizer* tokenizer_;
  int64_t vocabulary_;
  std::vector<int32_t> eos_ids_;
  std::unique_ptr<text::Constrainer> constrainer_;  // made for the first completion that needs it
};

}  // namespace collimate::generate

#pragma once

#include <cstddef>
#include <cstdint>

#include "collimate/base/fields.h"

namespace collimate::text {

// Declares what constraint.cpp calls of llguidance (github.com/guidance-ai/llguidance), which structures output. This
// is a part of the interface in C of the version in tools/requirements.txt, whose header (parser/llguidance.h) says
// what each function does. Structures and the order of members are that interface's.
struct LlgTokenizer;
struct LlgMatcher;

struct LlgParserLimits {  // 0 stands for the engine's own limit
  size_t max_items_in_row;
  uint64_t initial_lexer_fuel;
  uint64_t step_lexer_fuel;
  size_t step_max_items;
  size_t max_lexer_states;
  size_t max_grammar_size;
  bool precompute_large_lexemes;
  bool verbose_errors;
};

struct LlgConstraintInit {
  const LlgTokenizer* tokenizer;
  uint32_t log_buffer_level;
  uint32_t log_stderr_level;
  bool ff_tokens_ok;
  bool backtrack_ok;
  LlgParserLimits limits;
};

struct LlgTokenizerInitV2 {
  size_t struct_size;
  uint32_t vocab_size;
  uint32_t tok_eos;
  const uint32_t* token_lens;  // [vocab_size]
  const uint8_t* token_bytes;  // the bytes of all tokens, one after the other
  const char* tokenizer_json;
  bool tokenize_assumes_string;
  size_t (*tokenize_fn)(const void* data, const uint8_t* bytes, size_t count, uint32_t* tokens, size_t most);
  bool use_approximate_greedy_tokenize_fn;
  const void* tokenize_user_data;
  const char* const* slices;
  const uint32_t* tok_eos_extra;
  uint32_t tok_eos_extra_count;
};

// Functions that return an int32_t return -1 for an error.
struct Llguidance {
  void (*constraint_init_set_defaults)(LlgConstraintInit*, const LlgTokenizer*);
  LlgTokenizer* (*new_tokenizer_v2)(const LlgTokenizerInitV2*, char* error, size_t error_size);
  void (*free_tokenizer)(LlgTokenizer*);
  LlgMatcher* (*new_matcher)(const LlgConstraintInit*, const char* kind, const char* text);  // never null
  LlgMatcher* (*clone_matcher)(const LlgMatcher*);
  void (*free_matcher)(LlgMatcher*);
  const char* (*matcher_get_error)(LlgMatcher*);  // null: no error. A matcher keeps its error
  size_t (*matcher_get_mask_byte_size)(const LlgMatcher*);
  int32_t (*matcher_compute_mask_into)(LlgMatcher*, uint32_t* mask, size_t bytes);
  int32_t (*matcher_validate_tokens)(LlgMatcher*, const uint32_t* tokens, size_t count);  // how many may follow
  int32_t (*matcher_consume_tokens)(LlgMatcher*, const uint32_t* tokens, size_t count);
  int32_t (*matcher_rollback)(LlgMatcher*, size_t tokens);

  COLLIMATE_FIELDS(constraint_init_set_defaults, new_tokenizer_v2, free_tokenizer, new_matcher, clone_matcher,
                   free_matcher, matcher_get_error, matcher_get_mask_byte_size, matcher_compute_mask_into,
                   matcher_validate_tokens, matcher_consume_tokens, matcher_rollback)
};

// Returns the library, which the first call loads. Throws InputError in a build without it.
const Llguidance& llguidance();
inline constexpr const char* kLlguidanceLibrary = "collimate_llguidance.so";

}  // namespace collimate::text

#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collimate/text/hf_tokenizer.h"
#include "collimate/text/tokenizer_config.h"

namespace collimate::text {

// Is this the text of a tiktoken file: lines of a token in base64 and its rank?
bool looks_like_tiktoken(std::string_view bytes);

// `path`, a tiktoken file in `directory`: Qwen 1's qwen.tiktoken, Llama 3's own tokenizer.model, or tiktoken.model of
// Moonlight and Kimi. What such a file does not hold is known by family: the pattern that splits a text, the special
// tokens that tokenizer_config.json does not name, which have the ids behind the ranks. Throws InputError: malformed,
// or another family's.
std::unique_ptr<HfTokenizer> read_tiktoken(const std::string& path, const std::string& directory,
                                           TokenizerConfig config);

}  // namespace collimate::text

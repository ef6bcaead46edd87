#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "collimate/text/hf_tokenizer.h"
#include "collimate/text/tokenizer_config.h"

namespace collimate::text {

// Returns whether this is the text of a tiktoken file, whose lines are a token in base64 and its rank.
bool looks_like_tiktoken(std::string_view bytes);

// Reads `path`, a tiktoken file in `directory`: Qwen 1's qwen.tiktoken, Llama 3's own tokenizer.model, or
// tiktoken.model of Moonlight and Kimi. Such a file lacks the pattern that splits a text, and the special tokens that
// tokenizer_config.json does not name, which have the ids behind the ranks: both are known by family. Throws InputError
// for a malformed file, or for one of another family.
std::unique_ptr<HfTokenizer> read_tiktoken(const std::string& path, const std::string& directory,
                                           TokenizerConfig config);

}  // namespace collimate::text

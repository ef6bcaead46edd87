#pragma once

#include <memory>
#include <string>

#include "collimate/text/hf_tokenizer.h"
#include "collimate/text/tokenizer_config.h"

namespace collimate::text {

// Reads `directory`/tokenizer.json. Throws InputError for a malformed file, one without a vocabulary, or a component
// that is not supported.
std::unique_ptr<HfTokenizer> read_tokenizer_json(const std::string& directory, const TokenizerConfig& config);

// Reads GPT-2's and Qwen2's older form: `directory`/vocab.json and merges.txt, byte-level. The tokenizer_class of the
// config decides between GPT-2's and Qwen2's way of splitting.
std::unique_ptr<HfTokenizer> read_vocab_and_merges(const std::string& directory, const TokenizerConfig& config);

}  // namespace collimate::text

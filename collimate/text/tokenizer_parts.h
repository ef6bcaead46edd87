#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/hf_tokenizer.h"
#include "collimate/text/tokenizer_config.h"

namespace collimate::text {

// Says where a tokenizer's parts were read.
struct TokenizerFile {
  std::string directory;
  std::string path;        // the vocabulary's file, which errors name
  bool templated = false;  // the file itself says which ids stand around a text
};

// Makes the tokenizer of these parts, with the added tokens and special tokens of the files beside. Throws InputError
// for ids that contradict each other or are no tokens.
std::unique_ptr<HfTokenizer> assemble(TokenizerParts parts, const TokenizerConfig& config, const TokenizerFile& file);

// Returns the JSON of a byte-level pre-tokenizer that splits by a pattern.
nlohmann::json split_bytes(const char* pattern);

// These are the patterns of Qwen 1, 2 and 3, and of Llama 3, which differ in how many digits are one word.
inline constexpr const char* kQwen2Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr const char* kLlama3Pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// The pattern of Moonlight and Kimi takes runs of Han, words in one case or capitalised, and up to three digits. The
// original intersects its classes of letters with [^\p{Han}], for which PCRE2 looks ahead.
inline constexpr const char* kMoonshotPattern =
    R"([\p{Han}]+|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|[^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*(?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
    R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace collimate::text

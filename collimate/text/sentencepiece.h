#pragma once

#include <functional>
#include <memory>
#include <string>

#include "collimate/text/bpe_model.h"
#include "collimate/text/hf_tokenizer.h"
#include "collimate/text/tokenizer_config.h"

namespace collimate::text {

// Reads `path`, a SentencePiece model of kind BPE or Unigram, in `directory`. Ids are SentencePiece's own; its control
// and unknown pieces are special tokens, its user-defined ones added tokens, as transformers has them. The dummy prefix
// stands before the text, and with `legacy` in the config behind every added token too. Throws InputError for a
// malformed file, or for a part that is not supported.
std::unique_ptr<HfTokenizer> read_sentencepiece(const std::string& path, const std::string& directory,
                                                TokenizerConfig config);

// Returns all ways to cut a token into two others, as merges of the rank that `rank` gives the whole token. No merge
// makes a token of a negative rank.
BpeModel::Merges merges_to_tokens(const Vocabulary& vocabulary, const std::function<int32_t(int32_t id)>& rank);

}  // namespace collimate::text

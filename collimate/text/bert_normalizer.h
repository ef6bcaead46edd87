#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/text/normalizer.h"

namespace collimate::text {

// Returns the step of "BertNormalizer": clean_text, handle_chinese_chars, strip_accents and lowercase, in this order,
// each only where the component asks for it.
TextStep bert_normalizer(const nlohmann::json& component);

// Appends a character as "Nmt", SentencePiece's table of that name, maps it: controls are dropped, and rarer spaces
// become U+0020.
void append_nmt(std::string& out, uint32_t code_point);

}  // namespace collimate::text

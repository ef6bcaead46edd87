#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace collimate::text {

// Holds what a SentencePiece model file says (sentencepiece_model.proto), as far as encoding needs it.
struct SentencePieceModel {
  enum { kUnigram = 1, kBpe = 2 };
  enum { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    int64_t type = kNormal;  // kNormal to kByte
  };
  std::vector<Piece> pieces;  // by id
  int64_t kind = kUnigram;    // or kBpe
  bool byte_fallback = false;
  bool space_behind = false;  // treat_whitespace_as_suffix
  int64_t unk = 0, bos = 1, eos = 2, pad = -1;
  std::string charsmap;
  bool dummy_prefix = true;
  bool strip_spaces = true;  // remove_extra_whitespaces
  bool mark_spaces = true;   // escape_whitespaces
};

// Throws InputError, which names `where`, for bytes that are no such file.
SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& where);

}  // namespace collimate::text

#include "collimate/text/sentencepiece_model.h"

#include <cstring>
#include <functional>

#include "collimate/base/error.h"

namespace collimate::text {
namespace {

// One field of a message in Protocol Buffers' wire format.
struct Field {
  uint64_t number = 0;
  int64_t value = 0;       // of a varint
  float real = 0;          // of four bytes
  std::string_view bytes;  // of what has a length
};

class Wire {
 public:
  Wire(std::string_view bytes, const std::string& where) : rest_(bytes), where_(where) {}
  bool next(Field& field) {
    if (rest_.empty()) return false;
    const uint64_t tag = varint();
    field = {.number = tag >> 3};
    read_value(tag & 7, field);
    return true;
  }

 private:
  enum WireType { kVarint = 0, kEightBytes = 1, kLength = 2, kFourBytes = 5 };

  void read_value(uint64_t type, Field& field) {
    if (type == kVarint) {
      field.value = static_cast<int64_t>(varint());
    } else if (type == kLength) {
      field.bytes = take(varint());
    } else if (type == kFourBytes) {
      std::memcpy(&field.real, take(sizeof(field.real)).data(), sizeof(field.real));
    } else if (type == kEightBytes) {
      take(8);
    } else {
      malformed();
    }
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1)[0]);
      value |= static_cast<uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    malformed();
  }

  std::string_view take(uint64_t size) {
    if (size > rest_.size()) malformed();
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return out;
  }

  [[noreturn]] void malformed() const {
    throw base::InputError(base::expectation(where_, "a SentencePiece model",
                                             fmt::format("a broken field, {} bytes before the end", rest_.size()),
                                             "copying the file again"));
  }

  std::string_view rest_;
  const std::string& where_;
};

void each_field(std::string_view bytes, const std::string& where, const std::function<void(const Field&)>& use) {
  Wire wire(bytes, where);
  for (Field field; wire.next(field);) use(field);
}

SentencePieceModel::Piece parse_piece(std::string_view bytes, const std::string& where) {
  SentencePieceModel::Piece piece;
  each_field(bytes, where, [&](const Field& field) {
    if (field.number == 1) piece.text = field.bytes;
    if (field.number == 2) piece.score = field.real;
    if (field.number == 3) piece.type = field.value;
  });
  return piece;
}

void parse_trainer(const Field& field, SentencePieceModel& model) {
  if (field.number == 3) model.kind = field.value;
  if (field.number == 24) model.space_behind = field.value != 0;
  if (field.number == 35) model.byte_fallback = field.value != 0;
  if (field.number == 40) model.unk = field.value;
  if (field.number == 41) model.bos = field.value;
  if (field.number == 42) model.eos = field.value;
  if (field.number == 43) model.pad = field.value;
}

void parse_normalizer_spec(const Field& field, SentencePieceModel& model) {
  if (field.number == 2) model.charsmap = field.bytes;
  if (field.number == 3) model.dummy_prefix = field.value != 0;
  if (field.number == 4) model.strip_spaces = field.value != 0;
  if (field.number == 5) model.mark_spaces = field.value != 0;
}

}  // namespace

SentencePieceModel parse_sentencepiece(std::string_view bytes, const std::string& where) {
  SentencePieceModel model;
  each_field(bytes, where, [&](const Field& part) {
    if (part.number == 1) model.pieces.push_back(parse_piece(part.bytes, where));
    if (part.number == 2) each_field(part.bytes, where, [&](const Field& field) { parse_trainer(field, model); });
    if (part.number == 3)
      each_field(part.bytes, where, [&](const Field& field) { parse_normalizer_spec(field, model); });
  });
  return model;
}

}  // namespace collimate::text

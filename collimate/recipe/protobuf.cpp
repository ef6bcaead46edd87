#include "collimate/recipe/protobuf.h"

#include <bit>

namespace collimate::recipe {
namespace {

enum WireType : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7f) | 0x80);
  out += static_cast<char>(value);
}

void put_key(std::string& out, unsigned field, WireType type) { put_varint(out, field << 3 | type); }

}  // namespace

ProtobufMessage& ProtobufMessage::add_double(unsigned field, double value) {
  put_key(bytes_, field, kFixed64);
  put_fixed(bytes_, std::bit_cast<uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::add_float(unsigned field, float value) {
  put_key(bytes_, field, kFixed32);
  put_fixed(bytes_, std::bit_cast<uint32_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::add_int(unsigned field, int64_t value) {
  if (value == 0) return *this;
  put_key(bytes_, field, kVarint);
  put_varint(bytes_, static_cast<uint64_t>(value));
  return *this;
}

ProtobufMessage& ProtobufMessage::add_text(unsigned field, const std::string& value) {
  put_key(bytes_, field, kBytes);
  put_varint(bytes_, value.size());
  bytes_ += value;
  return *this;
}

ProtobufMessage& ProtobufMessage::add_message(unsigned field, const ProtobufMessage& value) {
  return add_text(field, value.bytes());
}

}  // namespace collimate::recipe

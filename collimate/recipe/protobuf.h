#pragma once

#include <cstdint>
#include <string>

namespace collimate::recipe {

// Appends the bytes of an integer, all that T has, the lowest first.
template <class T>
void put_fixed(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>(value >> (8 * i) & 0xffU);
}

// Writes a message of protocol buffers (proto3, protobuf.dev/programming-guides/encoding), with fields in the order in
// which they are added. An integer of 0 is left out, as proto3 does. Other fields are always written, as they may be
// entries of a list or a choice.
class ProtobufMessage {
 public:
  ProtobufMessage& add_double(unsigned field, double value);
  ProtobufMessage& add_float(unsigned field, float value);
  ProtobufMessage& add_int(unsigned field, int64_t value);              // int32, int64, bool
  ProtobufMessage& add_text(unsigned field, const std::string& value);  // UTF-8, or bytes
  ProtobufMessage& add_message(unsigned field, const ProtobufMessage& value);

  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

}  // namespace collimate::recipe

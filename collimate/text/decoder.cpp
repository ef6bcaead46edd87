#include "collimate/text/decoder.h"

#include <array>
#include <charconv>
#include <unordered_map>

#include "collimate/base/error.h"
#include "collimate/text/normalizer.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

using nlohmann::json;

// Printable Latin-1 bytes stand for themselves; the others are numbered upwards from U+0100 (GPT-2, encoder.py).
std::array<uint32_t, 256> make_spelling() {
  std::array<uint32_t, 256> spelling{};
  uint32_t next = 256;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
    spelling[byte] = printable ? byte : next++;
  }
  return spelling;
}

const std::array<uint32_t, 256>& spelling() {
  static const std::array<uint32_t, 256> table = make_spelling();
  return table;
}

// Byte for each code point below 512, -1 where there is none.
const std::array<int, 512>& inverse_spelling() {
  static const std::array<int, 512> table = [] {
    std::array<int, 512> inverse{};
    inverse.fill(-1);
    for (int byte = 0; byte < 256; ++byte) inverse[spelling()[byte]] = byte;
    return inverse;
  }();
  return table;
}

void parse_strip(const json& component, const std::string& where, Decoder& out) {
  const int start = component.value("start", 0);
  const int stop = component.value("stop", 0);
  if (start > 1 || stop > 0) {
    throw base::InputError(base::expectation(where, "Strip of at most one leading character",
                                             fmt::format("start {}, stop {}", start, stop)));
  }
  if (start == 1) out.strip_start = component.at("content");
}

void parse_into(const json& component, const std::string& where, Decoder& out) {
  if (component.is_null()) return;
  const std::string type = component.at("type");
  if (type == "Sequence") {
    for (const json& part : component.at("decoders")) parse_into(part, where, out);
  } else if (type == "ByteLevel") {
    out.steps.push_back([](std::string& token) { token = from_byte_spelling(token); });
  } else if (type == "ByteFallback") {
    out.steps.push_back([](std::string& token) {
      if (const int byte = byte_fallback_value(token); byte >= 0) token = std::string(1, static_cast<char>(byte));
    });
  } else if (type == "Replace" && component.at("pattern").contains("String")) {
    const std::string from = component.at("pattern").at("String");
    const std::string to = component.at("content");
    if (from.empty()) throw base::InputError(base::expectation(where, "a pattern to replace", "an empty one"));
    out.steps.push_back([from, to](std::string& token) { replace_all(token, from, to); });
  } else if (type == "Metaspace") {
    const std::string from = component.value("replacement", "\u2581");
    out.steps.push_back([from](std::string& token) { replace_all(token, from, " "); });
    const bool prefix = component.value("add_prefix_space", true);
    if (component.value("prepend_scheme", prefix ? "always" : "never") != "never") out.strip_start.assign(1, ' ');
  } else if (type == "Strip") {
    parse_strip(component, where, out);
  } else if (type != "Fuse") {  // tokens are always joined without anything between them
    unknown_component(where, "decoder", type,
                      "ByteLevel, ByteFallback, Metaspace, Replace (String), Fuse, Strip, Sequence");
  }
}

}  // namespace

std::string Decoder::token(std::string text) const {
  for (const auto& step : steps) step(text);
  return text;
}

Decoder parse_decoder(const json& json, const std::string& where) {
  Decoder out;
  parse_into(json, where, out);
  return out;
}

std::string to_byte_spelling(unsigned char byte) {
  std::string out;
  append_utf8(out, spelling()[byte]);
  return out;
}

std::string from_byte_spelling(const std::string& text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const std::string_view rest = std::string_view(text).substr(at);
    const size_t length = utf8_length(rest);
    if (length == 0) return text;
    const uint32_t code_point = utf8_code_point(rest);
    if (code_point >= 512 || inverse_spelling()[code_point] < 0) return text;
    out += static_cast<char>(inverse_spelling()[code_point]);
    at += length;
  }
  return out;
}

int byte_fallback_value(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = -1;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  return error == std::errc() && end == token.data() + 5 ? value : -1;
}

}  // namespace collimate::text

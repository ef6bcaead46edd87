#include "collimate/text/decoder.h"

#include <charconv>
#include <memory>

#include "collimate/base/error.h"
#include "collimate/text/byte_spelling.h"
#include "collimate/text/component.h"
#include "collimate/text/normalizer.h"
#include "collimate/text/space_marks.h"
#include "collimate/text/utf8.h"

namespace collimate::text {
namespace {

using nlohmann::json;

// A decoder as it has been read so far. `joined` says that the tokens are one text by now.
struct Parsed {
  Decoder decoder;
  bool joined = false;
};

void parse_byte_level(const json&, const std::string&, Parsed& out) {
  out.decoder.steps.push_back([](std::string& token, TokenPlace) { token = from_byte_spelling(token); });
  out.decoder.byte_level = true;
  out.joined = true;
}

void parse_byte_fallback(const json&, const std::string&, Parsed& out) {
  out.decoder.steps.push_back([](std::string& token, TokenPlace) {
    if (const int byte = byte_fallback_value(token); byte >= 0) token = std::string(1, static_cast<char>(byte));
  });
}

void parse_replace(const json& component, const std::string& where, Parsed& out) {
  const TextStep step = replace_step(component, where);
  out.decoder.steps.push_back([step](std::string& token, TokenPlace) { step(token, {}); });
}

void parse_metaspace(const json& component, const std::string&, Parsed& out) {
  const std::string mark = component.value("replacement", std::string(kSpaceMark));
  const bool prefix = component.value("add_prefix_space", true);
  const bool prepended = component.value("prepend_scheme", prefix ? "always" : "never") != "never";
  out.decoder.steps.push_back([mark, prepended](std::string& token, TokenPlace place) {
    replace_all(token, mark, place.first && prepended ? "" : " ");
  });
}

// Joins again what tokenizers of English put apart.
void clean_up(std::string& text) {
  static constexpr std::pair<const char*, const char*> kJoined[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [apart, joined] : kJoined) replace_all(text, apart, joined);
}

void parse_word_piece(const json& component, const std::string&, Parsed& out) {
  const std::string prefix = component.value("prefix", "##");
  const bool cleanup = component.value("cleanup", true);
  out.decoder.steps.push_back([prefix, cleanup](std::string& token, TokenPlace place) {
    const bool inside = token.starts_with(prefix);
    if (!place.first && inside) token.erase(0, prefix.size());
    if (!place.first && !inside) token.insert(token.begin(), ' ');
    if (cleanup) clean_up(token);
  });
}

void parse_bpe(const json& component, const std::string& where, Parsed& out) {
  const std::string suffix = component.value("suffix", "</w>");
  if (suffix.empty()) throw base::InputError(base::expectation(where, "a suffix of words", "an empty one"));
  out.decoder.steps.push_back(
      [suffix](std::string& token, TokenPlace place) { replace_all(token, suffix, place.last ? "" : " "); });
  out.decoder.ends.last_differs = true;
}

// Takes `ends.stripped` off a token's ends.
void strip_token(std::string& token, const TextEnds& ends) {
  for (int i = 0; i < ends.start && token.starts_with(ends.stripped); ++i) token.erase(0, ends.stripped.size());
  for (int i = 0; i < ends.stop && token.ends_with(ends.stripped); ++i)
    token.resize(token.size() - ends.stripped.size());
}

void parse_strip(const json& component, const std::string& where, Parsed& out) {
  TextEnds ends{.stripped = component.at("content").get<std::string>(),
                .start = component.value("start", 0),
                .stop = component.value("stop", 0)};
  if (ends.stripped.empty() || ends.start < 0 || ends.stop < 0)
    throw base::InputError(base::expectation(where, "Strip of a character, from 0 times", component.dump()));
  if (!out.joined) {
    out.decoder.steps.push_back([ends](std::string& token, TokenPlace) { strip_token(token, ends); });
    return;
  }
  if (!out.decoder.ends.stripped.empty())
    throw base::InputError(base::expectation(where, "one Strip of the joined text", "two"));
  ends.last_differs = out.decoder.ends.last_differs;
  out.decoder.ends = ends;
}

void parse_fuse(const json&, const std::string&, Parsed& out) { out.joined = true; }

using DecoderParser = void (*)(const json& component, const std::string& where, Parsed& out);

const Components<DecoderParser>& decoders() {
  static const Components<DecoderParser> table = {
      {"BPEDecoder", parse_bpe}, {"ByteFallback", parse_byte_fallback}, {"ByteLevel", parse_byte_level},
      {"Fuse", parse_fuse},      {"Metaspace", parse_metaspace},        {"Replace", parse_replace},
      {"Strip", parse_strip},    {"WordPiece", parse_word_piece},
  };
  return table;
}

}  // namespace

std::string Decoder::token(std::string text, TokenPlace place) const {
  for (const auto& step : steps) step(text, place);
  return text;
}

Decoder parse_decoder(const json& json, const std::string& where) {
  Parsed out;
  if (!json.is_null()) {
    const auto add = [&](const auto& component, const std::string& type, DecoderParser parse) {
      if (out.joined && type != "Strip" && type != "Fuse")
        throw base::InputError(
            base::expectation(where, "Strip and Fuse alone behind the decoder that joins tokens", type));
      parse(component, where, out);
    };
    each_component({"decoder", "decoders"}, decoders(), json, where, add);
  } else {
    out.decoder.steps.push_back([](std::string& token, TokenPlace place) {
      if (!place.first) token.insert(token.begin(), ' ');
    });
  }
  return std::move(out.decoder);
}

int byte_fallback_value(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  int value = -1;
  const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, value, 16);
  return error == std::errc() && end == token.data() + 5 ? value : -1;
}

}  // namespace collimate::text

#include "collimate/text/pre_tokenizer.h"

#include <memory>

#include "collimate/base/error.h"
#include "collimate/text/utf8.h"

namespace collimate::text {

const char* const kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

using nlohmann::json;

enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct Part {
  Span span;
  bool match;
};

// Matches and the gaps between them, in order; with `invert` their parts are exchanged.
void find_parts(const Regex& regex, std::string_view text, bool invert, std::vector<Part>& parts) {
  parts.clear();
  size_t at = 0;
  Span match;
  for (size_t from = 0; from < text.size() && regex.find(text, from, match);) {
    if (match.size() == 0) {
      from = match.end + std::max<size_t>(1, utf8_length(text.substr(std::min(match.end, text.size()))));
      continue;
    }
    if (match.begin > at) parts.push_back({{at, match.begin}, invert});
    parts.push_back({match, !invert});
    at = from = match.end;
  }
  if (at < text.size()) parts.push_back({{at, text.size()}, invert});
}

bool joins_previous(Behavior behavior, const Part* previous, const Part& part) {
  if (previous == nullptr) return false;
  switch (behavior) {
    case Behavior::kMergedWithPrevious:
      return part.match && !previous->match;
    case Behavior::kMergedWithNext:
      return previous->match && !part.match;
    case Behavior::kContiguous:
      return part.match == previous->match;
    default:
      return false;
  }
}

Splitter regex_splitter(const std::string& pattern, Behavior behavior, bool invert) {
  auto regex = std::make_shared<const Regex>(pattern);
  return [regex, behavior, invert](std::string_view text, Span piece, std::vector<Span>& out) {
    static thread_local std::vector<Part> parts;
    find_parts(*regex, text.substr(piece.begin, piece.size()), invert, parts);
    const Part* previous = nullptr;
    for (const Part& part : parts) {
      if (behavior == Behavior::kRemoved && part.match) continue;
      if (joins_previous(behavior, previous, part)) {
        out.back().end = piece.begin + part.span.end;
      } else {
        out.push_back({piece.begin + part.span.begin, piece.begin + part.span.end});
      }
      previous = &part;
    }
  };
}

Behavior parse_behavior(const std::string& name, const std::string& where) {
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  unknown_component(where, "split behavior", name, "Removed, Isolated, MergedWithPrevious, MergedWithNext, Contiguous");
}

void parse_split(const json& component, const std::string& where, PreTokenizer& out) {
  const json& pattern = component.at("pattern");
  const std::string regex = pattern.contains("String") ? regex_escape(pattern.at("String").get<std::string>())
                                                       : pattern.at("Regex").get<std::string>();
  out.splitters.push_back(
      regex_splitter(regex, parse_behavior(component.at("behavior"), where), component.value("invert", false)));
}

void parse_byte_level(const json& component, const std::string& where, PreTokenizer& out) {
  if (component.value("add_prefix_space", true)) {
    if (!out.splitters.empty()) {
      throw base::InputError(
          base::expectation(where, "ByteLevel with add_prefix_space in the first place", "a split before it"));
    }
    out.transforms.push_back([](std::string& text, SegmentPlace place) {
      if (!text.empty() && text[0] != ' ' && !(place.first && place.continues)) text.insert(text.begin(), ' ');
    });
  }
  if (component.value("use_regex", true)) {
    out.splitters.push_back(regex_splitter(kGpt2Pattern, Behavior::kIsolated, false));
  }
  out.byte_level = true;
}

void parse_metaspace(const json& component, const std::string& where, PreTokenizer& out) {
  if (!out.splitters.empty()) {
    throw base::InputError(base::expectation(where, "Metaspace in the first place", "a split before it"));
  }
  const std::string replacement = component.value("replacement", "\u2581");
  const std::string scheme =
      component.value("prepend_scheme", component.value("add_prefix_space", true) ? "always" : "never");
  out.transforms.push_back([replacement, scheme](std::string& text, SegmentPlace place) {
    replace_all(text, " ", replacement);
    const bool wanted = scheme == "always" || (scheme == "first" && place.first);
    if (wanted && !(place.first && place.continues) && !text.starts_with(replacement)) text.insert(0, replacement);
  });
  if (component.value("split", true)) {
    out.splitters.push_back(regex_splitter(regex_escape(replacement), Behavior::kMergedWithNext, false));
  }
}

void parse_into(const json& component, const std::string& where, PreTokenizer& out) {
  if (component.is_null()) return;
  const std::string type = component.at("type");
  if (out.byte_level) {
    throw base::InputError(base::expectation(where, "ByteLevel as the last pre-tokenizer", fmt::format("'{}'", type)));
  }
  if (type == "Sequence") {
    for (const json& part : component.at("pretokenizers")) parse_into(part, where, out);
  } else if (type == "Split") {
    parse_split(component, where, out);
  } else if (type == "ByteLevel") {
    parse_byte_level(component, where, out);
  } else if (type == "Digits") {
    const bool single = component.value("individual_digits", false);
    out.splitters.push_back(regex_splitter(single ? "\\p{N}" : "\\p{N}+", Behavior::kIsolated, false));
  } else if (type == "Metaspace") {
    parse_metaspace(component, where, out);
  } else {
    unknown_component(where, "pre-tokenizer", type, "ByteLevel, Split, Digits, Metaspace, Sequence");
  }
}

// Splits one well-formed run by every splitter in turn.
void split_run(const std::vector<Splitter>& splitters, std::string_view text, Span run, std::vector<Span>& words) {
  if (splitters.size() == 1) return splitters[0](text, run, words);
  std::vector<Span> pieces{run};
  std::vector<Span> parts;
  for (const Splitter& splitter : splitters) {
    parts.clear();
    for (const Span& piece : pieces) splitter(text, piece, parts);
    pieces.swap(parts);
  }
  words.insert(words.end(), pieces.begin(), pieces.end());
}

}  // namespace

void PreTokenizer::split(std::string_view text, std::vector<Span>& words) const {
  if (splitters.empty()) {
    if (!text.empty()) words.push_back({0, text.size()});
    return;
  }
  for (size_t at = 0; at < text.size();) {
    const size_t good = valid_run(text.substr(at));
    if (good > 0) split_run(splitters, text, {at, at + good}, words);
    at += good;
    if (at < text.size()) {
      words.push_back({at, at + 1});
      ++at;
    }
  }
}

PreTokenizer parse_pre_tokenizer(const json& json, const std::string& where) {
  PreTokenizer out;
  parse_into(json, where, out);
  return out;
}

}  // namespace collimate::text

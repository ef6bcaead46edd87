#include "collimate/text/pre_tokenizer.h"

#include "collimate/base/error.h"
#include "collimate/text/byte_spelling.h"
#include "collimate/text/characters.h"
#include "collimate/text/component.h"
#include "collimate/text/file_regex.h"
#include "collimate/text/space_marks.h"
#include "collimate/text/splitter.h"
#include "collimate/text/utf8.h"

namespace collimate::text {

namespace {

using nlohmann::json;

// GPT-2's own tokenizer splits by this regular expression.
constexpr const char* kGpt2Pattern = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// Splits the well-formed runs of a piece; the bytes between them are parts of their own.
void split_runs(const Splitter& splitter, std::string_view text, Span piece, std::vector<Span>& parts) {
  for (size_t at = piece.begin; at < piece.end;) {
    const size_t good = valid_run(text.substr(at, piece.end - at));
    if (good > 0) splitter(text, {at, at + good}, parts);
    at += good;
    if (at < piece.end) {
      parts.push_back({at, at + 1});
      ++at;
    }
  }
}

void add_splitter(PreTokenizer& out, Splitter splitter) {
  out.splits = true;
  out.steps.push_back([splitter = std::move(splitter)](Pieces& pieces, SegmentPlace) {
    static thread_local std::vector<Span> parts;
    parts.clear();
    for (const Span& piece : pieces.words) split_runs(splitter, pieces.text, piece, parts);
    pieces.words.swap(parts);
  });
}

// Adds a step that calls `change(word, place)` to change each word; `place.first` says that it begins a whole text.
template <class Change>
void add_change(PreTokenizer& out, Change change) {
  out.steps.push_back([change](Pieces& pieces, SegmentPlace place) {
    std::string text;
    std::string word;
    size_t done = 0;  // bytes of the old text
    for (Span& span : pieces.words) {
      text.append(pieces.text, done, span.begin - done);  // what was removed keeps its place
      word.assign(pieces.text, span.begin, span.size());
      done = span.end;
      const bool at_start = place.first && span.begin == 0;
      change(word, SegmentPlace{at_start, place.continues});
      span = {text.size(), text.size() + word.size()};
      text += word;
    }
    pieces.text = std::move(text);
  });
}

void parse_split(const json& component, const std::string& where, PreTokenizer& out) {
  const json& pattern = component.at("pattern");
  const Behavior behavior = parse_behavior(component.at("behavior"), where);
  const bool invert = component.value("invert", false);
  if (!pattern.contains("String"))
    return add_splitter(out, regex_splitter(read_file_regex(pattern, where), behavior, invert));
  const std::string text = pattern.at("String");
  if (text.empty()) throw base::InputError(base::expectation(where, "a pattern to split at", "an empty one"));
  add_splitter(out, text_splitter(text, behavior, invert));
}

void parse_byte_level(const json& component, const std::string&, PreTokenizer& out) {
  if (component.value("add_prefix_space", true)) {
    add_change(out, [](std::string& word, SegmentPlace place) {
      if (!word.empty() && word[0] != ' ' && !(place.first && place.continues)) word.insert(word.begin(), ' ');
    });
  }
  if (component.value("use_regex", true))
    add_splitter(out, regex_splitter(Regex(kGpt2Pattern), Behavior::kIsolated, false));
  out.byte_level = true;
}

std::string prepend_scheme(const json& component, const std::string& where) {
  const std::string scheme =
      component.value("prepend_scheme", component.value("add_prefix_space", true) ? "always" : "never");
  if (scheme != "always" && scheme != "never" && scheme != "first")
    unknown_component(where, "prepend_scheme", scheme, "always, first, never");
  return scheme;
}

void parse_metaspace(const json& component, const std::string& where, PreTokenizer& out) {
  const std::string mark = component.value("replacement", std::string(kSpaceMark));
  if (mark.empty()) throw base::InputError(base::expectation(where, "a replacement for spaces", "an empty one"));
  const std::string scheme = prepend_scheme(component, where);
  add_change(out, [mark, scheme](std::string& word, SegmentPlace place) {
    replace_all(word, " ", mark);
    const bool wanted = scheme == "always" || (scheme == "first" && place.first);
    if (wanted && !(place.first && place.continues) && !word.starts_with(mark)) word.insert(0, mark);
  });
  if (component.value("split", true)) add_splitter(out, text_splitter(mark, Behavior::kMergedWithNext, false));
}

void parse_punctuation(const json& component, const std::string& where, PreTokenizer& out) {
  const Behavior behavior = parse_behavior(component.value("behavior", "Isolated"), where);
  add_splitter(out, character_splitter(is_punctuation, behavior));
}

void parse_digits(const json& component, const std::string&, PreTokenizer& out) {
  const bool single = component.value("individual_digits", false);
  add_splitter(out, character_splitter(is_numeric, single ? Behavior::kIsolated : Behavior::kContiguous));
}

// Words are runs of \w, and runs of other characters that are no white space.
void parse_whitespace(const json&, const std::string&, PreTokenizer& out) {
  add_splitter(out, run_splitter([](uint32_t code_point) {
                 if (is_white_space(code_point)) return -1;
                 return is_word(code_point) ? 1 : 0;
               }));
}

void parse_whitespace_split(const json&, const std::string&, PreTokenizer& out) {
  add_splitter(out, run_splitter([](uint32_t code_point) { return is_white_space(code_point) ? -1 : 0; }));
}

void parse_bert(const json& component, const std::string& where, PreTokenizer& out) {
  parse_whitespace_split(component, where, out);
  add_splitter(out, character_splitter(is_punctuation, Behavior::kIsolated));
}

void parse_delimiter(const json& component, const std::string&, PreTokenizer& out) {
  add_splitter(out, text_splitter(component.at("delimiter"), Behavior::kRemoved, false));
}

void parse_scripts(const json&, const std::string&, PreTokenizer& out) { add_splitter(out, script_splitter()); }

void parse_fixed_length(const json& component, const std::string& where, PreTokenizer& out) {
  const json length = component.value("length", json(5));
  if (!length.is_number_unsigned() || length == 0)
    throw base::InputError(base::expectation(where, "a FixedLength of at least one character", length.dump()));
  add_splitter(out, length_splitter(length));
}

using PreTokenizerParser = void (*)(const json& component, const std::string& where, PreTokenizer& out);

const Components<PreTokenizerParser>& pre_tokenizers() {
  static const Components<PreTokenizerParser> table = {
      {"BertPreTokenizer", parse_bert},
      {"ByteLevel", parse_byte_level},
      {"CharDelimiterSplit", parse_delimiter},
      {"Digits", parse_digits},
      {"FixedLength", parse_fixed_length},
      {"Metaspace", parse_metaspace},
      {"Punctuation", parse_punctuation},
      {"Split", parse_split},
      {"UnicodeScripts", parse_scripts},
      {"Whitespace", parse_whitespace},
      {"WhitespaceSplit", parse_whitespace_split},
  };
  return table;
}

}  // namespace

void spell_bytes(PreTokenizer& pre_tokenizer) {
  add_change(pre_tokenizer, [](std::string& word, SegmentPlace) { word = byte_spelling_of(word); });
  pre_tokenizer.byte_level = false;
}

void PreTokenizer::split(Pieces& pieces, SegmentPlace place) const {
  pieces.words.clear();
  if (pieces.text.empty()) return;
  pieces.words.push_back({0, pieces.text.size()});
  for (const Step& step : steps) step(pieces, place);
}

PreTokenizer parse_pre_tokenizer(const json& json, const std::string& where) {
  PreTokenizer out;
  each_component({"pre-tokenizer", "pretokenizers"}, pre_tokenizers(), json, where,
                 [&](const auto& component, const std::string&, PreTokenizerParser parse) {
                   if (out.byte_level) spell_bytes(out);  // what comes after ByteLevel sees its spelling
                   parse(component, where, out);
                 });
  return out;
}

}  // namespace collimate::text

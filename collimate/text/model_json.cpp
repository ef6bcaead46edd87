#include "collimate/text/model_json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "collimate/base/error.h"
#include "collimate/text/bpe_model.h"
#include "collimate/text/byte_spelling.h"
#include "collimate/text/component.h"
#include "collimate/text/unigram.h"
#include "collimate/text/word_level.h"

namespace collimate::text {
namespace {

using nlohmann::json;

[[noreturn]] void no_vocabulary(const std::string& where, const std::string& expected) {
  throw base::InputError(base::expectation(where, expected, "none", "the model's complete directory"));
}

// Reads {"token": id, ...}.
std::shared_ptr<const Vocabulary> read_vocabulary(const json& vocabulary, const std::string& where) {
  if (!vocabulary.is_object() || vocabulary.empty()) no_vocabulary(where, "a vocabulary of tokens and ids");
  auto out = std::make_shared<Vocabulary>();
  out->reserve(vocabulary.size());
  for (const auto& [token, id] : vocabulary.items()) {
    if (!id.is_number_integer())
      throw base::InputError(base::expectation(where, fmt::format("an id for '{}'", token), id.dump()));
    out->add(token, id.get<int64_t>(), where);
  }
  return out;
}

// Reads "left right". Where tokens hold spaces themselves, the first space that leaves tokens on both sides divides.
BpeModel::Merge merge_of_line(const std::string& line, const Vocabulary& vocabulary, const std::string& where,
                              int32_t rank) {
  size_t space = line.find(' ');
  for (size_t at = space; at != std::string::npos; at = line.find(' ', at + 1)) {
    const std::string left = line.substr(0, at);
    const std::string right = line.substr(at + 1);
    if (!vocabulary.find(left) || !vocabulary.find(right) || !vocabulary.find(left + right)) continue;
    space = at;
    break;
  }
  if (space == std::string::npos)
    throw base::InputError(
        base::expectation(where, fmt::format("two tokens in merge {}", rank), fmt::format("'{}'", line)));
  return {line.substr(0, space), line.substr(space + 1), rank};
}

// Reads merges, each of which is "left right" or ["left", "right"].
BpeModel::Merges read_merges(const json& merges, const Vocabulary& vocabulary, const std::string& where) {
  BpeModel::Merges out;
  out.reserve(merges.size());
  for (const json& merge : merges) {
    const auto rank = static_cast<int32_t>(out.size());
    if (merge.is_array() && merge.size() == 2) {
      out.push_back({merge[0].get<std::string>(), merge[1].get<std::string>(), rank});
    } else {
      out.push_back(merge_of_line(merge.get_ref<const std::string&>(), vocabulary, where, rank));
    }
  }
  return out;
}

std::string text_of(const json& model, const char* key) {
  const auto found = model.find(key);
  return found == model.end() || found->is_null() ? "" : found->get<std::string>();
}

// Refuses dropout, which draws other ids each time: for a model that is being aligned that would be a surprise.
void refuse_dropout(const json& model, const std::string& where) {
  const auto found = model.find("dropout");
  if (found == model.end() || found->is_null() || *found == 0.0) return;
  throw base::InputError(base::expectation(where, "no model option 'dropout'", found->dump(), "dropout: null"));
}

std::optional<int32_t> unk_of(const json& model, const Vocabulary& vocabulary) {
  const std::string unk = text_of(model, "unk_token");
  return unk.empty() ? std::nullopt : vocabulary.find(unk);
}

bool spells_every_byte(const Vocabulary& vocabulary) {
  for (int byte = 0; byte < 256; ++byte)
    if (!vocabulary.find(to_byte_spelling(static_cast<unsigned char>(byte)))) return false;
  return true;
}

// Reads a BPE model. Where the file names no unk, what is no token is left out, as in Hugging Face tokenizers. Byte
// fallback matters only where the spelling of a byte is no token.
VocabularyModel parse_bpe(const json& model, const std::string& where, bool byte_level) {
  refuse_dropout(model, where);
  VocabularyModel out{.vocabulary = read_vocabulary(model.at("vocab"), where)};
  BpeModel::Options options{.unk = unk_of(model, *out.vocabulary),
                            .drops_unknown = text_of(model, "unk_token").empty(),
                            .fuse_unk = model.value("fuse_unk", false),
                            .byte_fallback = model.value("byte_fallback", false),
                            .ignore_merges = model.value("ignore_merges", false),
                            .prefix = text_of(model, "continuing_subword_prefix"),
                            .suffix = text_of(model, "end_of_word_suffix"),
                            .where = where};
  out.byte_level = byte_level && options.prefix.empty() && options.suffix.empty() &&
                   (!options.byte_fallback || spells_every_byte(*out.vocabulary));
  options.byte_level = out.byte_level;
  const auto merges = read_merges(model.at("merges"), *out.vocabulary, where);
  out.model = std::make_unique<BpeModel>(out.vocabulary, merges, std::move(options));
  return out;
}

// Returns a number as serde_json reads it, which Hugging Face tokenizers use: the quotient of its digits and a power of
// ten, which is not always the nearest double. So cuts that are equally likely up to rounding come out as they do
// there.
double quotient(double number) {
  std::array<char, 32> buffer{};
  const char* end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, std::chars_format::scientific).ptr;
  const char* mark = std::find<const char*>(buffer.data(), end, 'e');
  if (mark == end) return number;  // infinite
  uint64_t digits = 0;
  int exponent = std::atoi(mark + 1);
  bool fraction = false;
  for (const char* at = buffer.data(); at < mark; ++at) {
    if (*at == '.') fraction = true;
    if (*at < '0' || *at > '9') continue;
    digits = digits * 10 + static_cast<uint64_t>(*at - '0');
    if (fraction) --exponent;
  }
  const double power = std::pow(10.0, std::abs(exponent));
  const double size = exponent < 0 ? static_cast<double>(digits) / power : static_cast<double>(digits) * power;
  return std::copysign(size, number);
}

std::optional<int32_t> unk_id(const json& model, size_t tokens, const std::string& where) {
  const auto found = model.find("unk_id");
  if (found == model.end() || found->is_null()) return std::nullopt;
  if (!found->is_number_unsigned() || found->get<uint64_t>() >= tokens)
    throw base::InputError(base::expectation(where, fmt::format("an unk_id below {}", tokens), found->dump()));
  return found->get<int32_t>();
}

VocabularyModel parse_unigram(const json& model, const std::string& where, bool) {
  const json& list = model.at("vocab");
  if (!list.is_array() || list.empty()) no_vocabulary(where, "a vocabulary of tokens and log-probs");
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->reserve(list.size());
  std::vector<double> scores;
  for (const json& entry : list) {
    vocabulary->add(entry.at(0).get_ref<const std::string&>(), static_cast<int64_t>(scores.size()), where);
    scores.push_back(quotient(entry.at(1).get<double>()));
  }
  const Unigram::Options options{
      .unk = unk_id(model, list.size(), where), .byte_fallback = model.value("byte_fallback", false), .where = where};
  return {vocabulary, std::make_unique<Unigram>(vocabulary, std::move(scores), options)};
}

VocabularyModel parse_word_piece(const json& model, const std::string& where, bool) {
  auto vocabulary = read_vocabulary(model.at("vocab"), where);
  const auto unk = vocabulary->find(model.value("unk_token", "[UNK]"));
  if (!unk)
    throw base::InputError(base::expectation(where, "an unk_token that is in the vocabulary",
                                             fmt::format("'{}'", model.value("unk_token", "[UNK]"))));
  WordPiece::Options options{.unk = *unk,
                             .prefix = model.value("continuing_subword_prefix", "##"),
                             .longest_word = model.value("max_input_chars_per_word", int64_t{100})};
  return {vocabulary, std::make_unique<WordPiece>(vocabulary, std::move(options))};
}

VocabularyModel parse_word_level(const json& model, const std::string& where, bool) {
  auto vocabulary = read_vocabulary(model.at("vocab"), where);
  const auto unk = unk_of(model, *vocabulary);
  return {vocabulary, std::make_unique<WordLevel>(vocabulary, unk, where)};
}

using ModelParser = VocabularyModel (*)(const json& model, const std::string& where, bool byte_level);
constexpr std::pair<const char*, ModelParser> kModels[] = {
    {"BPE", parse_bpe}, {"Unigram", parse_unigram}, {"WordPiece", parse_word_piece}, {"WordLevel", parse_word_level}};

// Returns the type of a model, which older files left out.
std::string type_of(const json& model) {
  if (model.contains("type")) return model.at("type");
  if (model.contains("merges")) return "BPE";
  if (model.contains("unk_id")) return "Unigram";
  return model.contains("continuing_subword_prefix") ? "WordPiece" : "WordLevel";
}

}  // namespace

VocabularyModel parse_model(const json& file, const std::string& where, bool byte_level) {
  const auto found = file.find("model");
  if (found == file.end() || !found->is_object() || !found->contains("vocab"))
    no_vocabulary(where, "a model with a vocabulary");
  const std::string type = type_of(*found);
  std::vector<std::string> known;
  for (const auto& [name, parse] : kModels) {
    if (type == name) return parse(*found, where, byte_level);
    known.emplace_back(name);
  }
  unknown_component(where, "model", type, fmt::format("{}", fmt::join(known, ", ")));
}

}  // namespace collimate::text

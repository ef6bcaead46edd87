#include "collimate/text/sentencepiece.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/host/file_io.h"
#include "collimate/text/charsmap.h"
#include "collimate/text/sentencepiece_model.h"
#include "collimate/text/space_marks.h"
#include "collimate/text/tokenizer_parts.h"
#include "collimate/text/unicode_form.h"
#include "collimate/text/unigram.h"

namespace collimate::text {
namespace {

using Model = SentencePieceModel;

void check_supported(const Model& model, const std::string& where) {
  const auto refuse = [&](bool bad, const std::string& expected, const std::string& got) {
    if (bad) throw base::InputError(base::expectation(where, expected, got, "the model's tokenizer.json"));
  };
  refuse(model.pieces.empty(), "pieces", "none");
  refuse(model.kind != Model::kUnigram && model.kind != Model::kBpe, "a model of type Unigram (1) or BPE (2)",
         fmt::to_string(model.kind));
  refuse(model.space_behind, "spaces before words", "treat_whitespace_as_suffix");
  refuse(!model.mark_spaces, "spaces written as U+2581", "escape_whitespaces: false");
  const auto unused = std::find_if(model.pieces.begin(), model.pieces.end(),
                                   [](const Model::Piece& piece) { return piece.type == Model::kUnused; });
  refuse(unused != model.pieces.end(), "no piece of type UNUSED",
         unused == model.pieces.end() ? "" : "'" + unused->text + "'");
}

bool is_part(const Model::Piece& piece) { return piece.type == Model::kNormal || piece.type == Model::kUserDefined; }

std::shared_ptr<const Vocabulary> vocabulary_of(const Model& model, const std::string& where) {
  auto vocabulary = std::make_shared<Vocabulary>();
  vocabulary->reserve(model.pieces.size());
  for (size_t id = 0; id < model.pieces.size(); ++id)
    vocabulary->add(model.pieces[id].text, static_cast<int64_t>(id), where);
  return vocabulary;
}

// Returns the ranks by id: pieces of the highest score merge first.
std::vector<int32_t> ranks_of(const Model& model) {
  std::vector<size_t> order(model.pieces.size());
  std::iota(order.begin(), order.end(), 0);
  const auto score = [&](size_t id) { return model.pieces[id].score; };
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return score(a) > score(b); });
  std::vector<int32_t> ranks(order.size(), -1);
  int32_t rank = 0;
  for (size_t place = 0; place < order.size(); ++place) {
    if (place > 0 && score(order[place]) < score(order[place - 1])) ++rank;
    if (is_part(model.pieces[order[place]])) ranks[order[place]] = rank;
  }
  return ranks;
}

std::optional<int32_t> unk_of(const Model& model) {
  const bool has = model.unk >= 0 && static_cast<size_t>(model.unk) < model.pieces.size();
  return has ? std::optional(static_cast<int32_t>(model.unk)) : std::nullopt;
}

float least_score(const Model& model) {
  float least = std::numeric_limits<float>::max();
  for (const Model::Piece& piece : model.pieces)
    if (piece.type == Model::kNormal) least = std::min(least, piece.score);
  return least;
}

// A user-defined symbol has a tenth for each of its bytes but the first, which is more than any logarithm, so that the
// longest of overlapping symbols counts: the cuts of SentencePiece 0.2.3 (earlier ones weighed symbols by the likeliest
// piece).
double unigram_score(const Model::Piece& piece) {
  if (piece.type == Model::kUserDefined) return 0.1F * static_cast<float>(piece.text.size() - 1);
  return is_part(piece) ? piece.score : std::numeric_limits<double>::quiet_NaN();
}

VocabularyModel model_of(const Model& model, const std::string& where) {
  VocabularyModel out{.vocabulary = vocabulary_of(model, where)};
  if (model.kind == Model::kBpe) {
    const std::vector<int32_t> ranks = ranks_of(model);
    const auto merges = merges_to_tokens(*out.vocabulary, [&](int32_t id) { return ranks[id]; });
    out.model = std::make_unique<BpeModel>(
        out.vocabulary, merges,
        BpeModel::Options{
            .unk = unk_of(model), .fuse_unk = true, .byte_fallback = model.byte_fallback, .where = where});
    return out;
  }
  std::vector<double> scores;
  for (const Model::Piece& piece : model.pieces) scores.push_back(unigram_score(piece));
  out.model = std::make_unique<Unigram>(out.vocabulary, std::move(scores),
                                        Unigram::Options{.unk = unk_of(model),
                                                         .byte_fallback = model.byte_fallback,
                                                         .float_sums = true,
                                                         .least = least_score(model),
                                                         .where = where});
  return out;
}

std::vector<AddedToken> added_of(const Model& model) {
  std::vector<AddedToken> added;
  for (size_t id = 0; id < model.pieces.size(); ++id) {
    const Model::Piece& piece = model.pieces[id];
    const bool special = piece.type == Model::kControl || piece.type == Model::kUnknown;
    // User-defined symbols are looked for where spaces have become marks, as SentencePiece does.
    if (special || piece.type == Model::kUserDefined)
      added.push_back({.id = static_cast<int32_t>(id),
                       .content = piece.text,
                       .special = special,
                       .normalized = !special,
                       .spelled = !special,
                       .weighed = !special && model.kind == Model::kUnigram});
  }
  return added;
}

TokenMatcher symbols_of(const Model& model) {
  TokenMatcher symbols;
  for (const AddedToken& token : added_of(model))
    if (!token.special) symbols.add(token);
  return symbols;
}

// Joins what `change` makes of the well-formed text between symbols, and the symbols.
std::string apply_between(const TokenMatcher& symbols, std::string_view text,
                          const std::function<std::string(std::string_view)>& change) {
  std::string out;
  Span match;
  int32_t id = 0;
  size_t at = 0;
  for (; symbols.find(text, at, false, match, id); at = match.end) {
    out += apply_to_valid(std::string(text.substr(at, match.begin - at)), change);
    out += text.substr(match.begin, match.size());
  }
  return out + apply_to_valid(std::string(text.substr(at)), change);
}

// Removes spaces at the beginning of a text, and all but one of spaces in a row.
void join_spaces(std::string& text, SegmentPlace place) {
  text.erase(std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }), text.end());
  if (text.starts_with(' ') && place.first && !place.continues) text.erase(0, 1);
}

// Returns the steps by which SentencePiece's normalizer.cc prepares a text: charsmap, spaces, dummy prefix, marks in
// the place of spaces.
std::vector<TextStep> steps_of(const Model& model, bool prefix, bool legacy, const std::string& where) {
  std::vector<TextStep> steps;
  if (!model.charsmap.empty()) {
    const auto map = std::make_shared<const Charsmap>(model.charsmap, where);
    steps.push_back([map, symbols = symbols_of(model)](std::string& text, SegmentPlace) {
      text = apply_between(symbols, text, [&](std::string_view run) { return map->replace_longest(run); });
    });
  }
  if (model.strip_spaces) steps.push_back(join_spaces);
  steps.push_back([prefix, legacy, strip = model.strip_spaces](std::string& text, SegmentPlace place) {
    const bool wanted = prefix && (place.first ? !place.continues : legacy);
    if (wanted && !text.empty()) text.insert(text.begin(), ' ');
    replace_all(text, " ", std::string(kSpaceMark));
    while (strip && text.ends_with(kSpaceMark))
      text.resize(text.size() - kSpaceMark.size());  // also those written as marks
  });
  return steps;
}

// Returns a decoder that takes as many spaces off a text's beginning as SentencePiece may have put there or taken away.
nlohmann::json decoder_of(bool prefix, bool strip) {
  const int spaces = strip ? std::numeric_limits<int>::max() : static_cast<int>(prefix);
  return {{"type", "Sequence"},
          {"decoders",
           {{{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}},
            {{"type", "ByteFallback"}},
            {{"type", "Fuse"}},
            {{"type", "Strip"}, {"content", " "}, {"start", spaces}, {"stop", 0}}}}};
}

// Sets the names of special tokens that the files beside the model do not give.
void name_specials(const Model& model, TokenizerConfig& config) {
  const auto name = [&](std::string& own, int64_t id) {
    if (own.empty() && id >= 0 && static_cast<size_t>(id) < model.pieces.size()) own = model.pieces[id].text;
  };
  name(config.bos, model.bos);
  name(config.eos, model.eos);
  name(config.unk, model.unk);
  name(config.pad, model.pad);
}

}  // namespace

std::unique_ptr<HfTokenizer> read_sentencepiece(const std::string& path, const std::string& directory,
                                                TokenizerConfig config) {
  const Model model = parse_sentencepiece(host::read_file(path), path);
  check_supported(model, path);
  const bool prefix = config.add_prefix_space.value_or(model.dummy_prefix);
  const bool legacy = config.legacy.value_or(false);
  name_specials(model, config);
  TokenizerParts parts;
  parts.model = model_of(model, path);
  parts.added = added_of(model);
  parts.normalizer = steps_of(model, prefix, legacy, path);
  parts.decoder = parse_decoder(decoder_of(prefix, model.strip_spaces), path);
  return assemble(std::move(parts), config, {.directory = directory, .path = path});
}

BpeModel::Merges merges_to_tokens(const Vocabulary& vocabulary, const std::function<int32_t(int32_t id)>& rank) {
  BpeModel::Merges merges;
  const auto& tokens = vocabulary.tokens();
  for (size_t id = 0; id < tokens.size(); ++id) {
    const int32_t own = rank(static_cast<int32_t>(id));
    const std::string_view token = tokens[id];
    for (size_t cut = 1; own >= 0 && cut < token.size(); ++cut) {
      if (!base::begins_character(token[cut])) continue;
      const std::string_view left = token.substr(0, cut), right = token.substr(cut);
      if (vocabulary.find(left) && vocabulary.find(right))
        merges.push_back({std::string(left), std::string(right), own});
    }
  }
  return merges;
}

}  // namespace collimate::text

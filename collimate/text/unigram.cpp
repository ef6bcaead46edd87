#include "collimate/text/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "collimate/text/characters.h"

namespace collimate::text {
namespace {

constexpr double kUnknownPenalty = 10.0;

// The best cut of the bytes that end here.
struct Cut {
  double score = 0;
  int32_t id = -1;
  int32_t begin = -1;  // of its last token; -1: no cut ends here
};

struct Piece {
  int32_t id;
  size_t begin, end;
};

// Returns the tokens that cuts are made of, by id; empty in the places of others.
std::vector<std::string> parts_of(const Vocabulary& vocabulary, const std::vector<double>& scores) {
  std::vector<std::string> parts = vocabulary.tokens();
  for (size_t id = 0; id < parts.size(); ++id)
    if (std::isnan(scores[id])) parts[id].clear();
  return parts;
}

void offer(Cut& cut, const Cut& candidate) {
  if (cut.begin < 0 || candidate.score > cut.score) cut = candidate;
}

}  // namespace

Unigram::Unigram(std::shared_ptr<const Vocabulary> vocabulary, std::vector<double> scores, Options options)
    : vocabulary_(std::move(vocabulary)),
      scores_(std::move(scores)),
      unk_(options.unk),
      where_(std::move(options.where)),
      byte_fallback_(options.byte_fallback ? byte_fallback_ids(*vocabulary_) : std::vector<int32_t>()),
      float_sums_(options.float_sums),
      trie_(parts_of(*vocabulary_, scores_)) {
  double least = std::numeric_limits<double>::infinity();
  for (const double score : scores_) least = std::fmin(least, score);
  unk_score_ = sum(options.least.value_or(least), -kUnknownPenalty);
}

void Unigram::encode(std::string_view word, std::vector<int32_t>& ids) const {
  static thread_local std::vector<Cut> cuts;
  static thread_local std::vector<Piece> pieces;
  cuts.assign(word.size() + 1, {});
  for (size_t at = 0; at < word.size();) {
    const size_t character = character_at(word, at).size;
    const double score = cuts[at].score;
    const auto begin = static_cast<int32_t>(at);
    bool single = false;
    trie_.prefixes(word.substr(at), [&](size_t size, int32_t id) {
      offer(cuts[at + size], {sum(scores_[id], score), id, begin});
      single = single || size == character;
    });
    if (!single) offer(cuts[at + character], {sum(unk_score_, score), -1, begin});
    at += character;
  }
  pieces.clear();
  for (size_t end = word.size(); end > 0;) {
    const auto begin = static_cast<size_t>(cuts[end].begin);
    const int32_t id = cuts[end].id == unk_ ? -1 : cuts[end].id;
    if (id < 0 && !pieces.empty() && pieces.back().id < 0) {
      pieces.back().begin = begin;
    } else {
      pieces.push_back({id, begin, end});
    }
    end = begin;
  }
  std::for_each(pieces.rbegin(), pieces.rend(), [&](const Piece& piece) {
    if (piece.id >= 0) return ids.push_back(piece.id);
    push_unknown(word.substr(piece.begin, piece.end - piece.begin), ids);
  });
}

void Unigram::push_unknown(std::string_view bytes, std::vector<int32_t>& ids) const {
  // Fused characters may spell a token that is less likely than they are.
  if (const auto token = vocabulary_->find(bytes); token && !std::isnan(scores_[*token])) return ids.push_back(*token);
  const auto fallback = [&](char c) { return byte_fallback_[static_cast<unsigned char>(c)]; };
  const auto has_byte = [&](char c) { return fallback(c) >= 0; };
  if (!byte_fallback_.empty() && std::all_of(bytes.begin(), bytes.end(), has_byte)) {
    std::transform(bytes.begin(), bytes.end(), std::back_inserter(ids), fallback);
    return;
  }
  if (!unk_) cannot_express(where_, bytes);
  ids.push_back(*unk_);
}

}  // namespace collimate::text

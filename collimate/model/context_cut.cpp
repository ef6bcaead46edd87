#include "collimate/model/context_cut.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/model.h"
#include "collimate/tensor/host_access.h"

namespace collimate::model {
namespace {

// Collects the pieces of a batch by rank, with the number of tokens that each rank has so far.
class Cutter {
 public:
  explicit Cutter(int ranks) : pieces_(static_cast<size_t>(ranks)), tokens_(static_cast<size_t>(ranks)) {}

  void add(int64_t sequence, int64_t first, int64_t tokens) {
    const size_t ranks = pieces_.size(), chunks = 2 * ranks;
    std::vector<int64_t> lengths(chunks, tokens / static_cast<int64_t>(chunks));
    std::vector<int64_t> more(ranks);  // tokens that are left go one by one to the rank with the fewest
    for (int64_t left = tokens % static_cast<int64_t>(chunks); left > 0; --left) {
      const auto rank = static_cast<size_t>(std::ranges::min_element(tokens_) - tokens_.begin());
      ++tokens_[rank];
      ++lengths[more[rank]++ % 2 == 0 ? rank : chunks - 1 - rank];
    }
    for (size_t chunk = 0; chunk < chunks; ++chunk) {
      const size_t rank = std::min(chunk, chunks - 1 - chunk);
      tokens_[rank] += tokens / static_cast<int64_t>(chunks);
      if (lengths[chunk] > 0) append(pieces_[rank], {sequence, first, lengths[chunk]});
      first += lengths[chunk];
    }
  }

  const std::vector<TokenPiece>& pieces(int rank) const { return base::at(pieces_, rank); }
  int64_t most_tokens() const { return *std::ranges::max_element(tokens_); }

 private:
  // The last rank's two pieces of a sequence lie side by side and become one.
  static void append(std::vector<TokenPiece>& pieces, const TokenPiece& piece) {
    const bool goes_on = !pieces.empty() && pieces.back().sequence == piece.sequence &&
                         pieces.back().first + pieces.back().tokens == piece.first;
    if (goes_on)
      pieces.back().tokens += piece.tokens;
    else
      pieces.push_back(piece);
  }

  std::vector<std::vector<TokenPiece>> pieces_;
  std::vector<int64_t> tokens_;
};

// Returns the values of some rows, out of values [T, each] of `all` rows.
template <class T>
std::vector<T> rows_of(const std::vector<T>& values, std::span<const int32_t> rows, size_t all) {
  const size_t each = values.size() / all;
  std::vector<T> some;
  some.reserve(rows.size() * each);
  for (const int32_t row : rows) {
    const auto first = values.begin() + row * static_cast<int64_t>(each);
    some.insert(some.end(), first, first + static_cast<int64_t>(each));
  }
  return some;
}

}  // namespace

void ContextRanks::gather(const tensor::Exec& exec, float* values, int64_t each) const {
  if (group == nullptr) return;
  const tensor::HostEdit seen(exec, values, ranks * each);
  const std::span<float> mine = seen.span().subspan(static_cast<size_t>(rank * each), static_cast<size_t>(each));
  group->all_gather(std::as_bytes(mine), std::as_writable_bytes(seen.span())).wait(deadline_seconds);
}

void ContextRanks::sum_rows(const tensor::Exec& exec, float* values, int64_t each) const {
  if (group == nullptr) return;
  const tensor::HostEdit seen(exec, values, ranks * each);
  const std::span<float> mine = seen.span().subspan(static_cast<size_t>(rank * each), static_cast<size_t>(each));
  group->reduce_scatter(seen.span(), mine).wait(deadline_seconds);
}

void ContextRanks::exchange(const tensor::Exec& exec, const float* from, float* to,
                            std::span<const int64_t> floats) const {
  if (group == nullptr) return;
  std::vector<size_t> bytes;
  int64_t out = 0, in = 0;
  for (int f = 0; f < ranks; ++f)
    for (int t = 0; t < ranks; ++t) {
      const int64_t count = base::at(floats, f * ranks + t);
      bytes.push_back(static_cast<size_t>(count) * sizeof(float));
      if (f == rank) out += count;
      if (t == rank) in += count;
    }
  const tensor::HostRead given(exec, from, out);
  const tensor::HostEdit taken(exec, to, in);
  group->all_to_all(std::as_bytes(given.span()), std::as_writable_bytes(taken.span()), bytes).wait(deadline_seconds);
}

ContextCut::ContextCut(std::span<const int32_t> starts, const ContextRanks& ranks) : ranks_(ranks) {
  Cutter cutter(ranks.ranks);
  for (size_t i = 0; i + 1 < starts.size(); ++i)
    cutter.add(static_cast<int64_t>(i), starts[i], starts[i + 1] - starts[i]);
  most_ = cutter.most_tokens();
  pieces_ = cutter.pieces(ranks.rank);
  places_.resize(static_cast<size_t>(starts.back()));
  rows_.resize(static_cast<size_t>(ranks.ranks * most_));
  turns_.resize(places_.size());
  for (int rank = 0; rank < ranks.ranks; ++rank) {
    auto place = static_cast<int32_t>(rank * most_);
    const auto first = static_cast<int64_t>(in_turn_.size());
    for (const TokenPiece& piece : cutter.pieces(rank))
      for (int64_t row = piece.first; row < piece.first + piece.tokens; ++row, ++place) {
        base::at(places_, row) = place;
        base::at(rows_, place) = static_cast<int32_t>(row);
        base::at(turns_, row) = static_cast<int32_t>(in_turn_.size());
        in_turn_.push_back(static_cast<int32_t>(row));
        if (rank == ranks.rank) own_.push_back(static_cast<int32_t>(row));
      }
    counts_.push_back(static_cast<int64_t>(in_turn_.size()) - first);
  }
}

int64_t ContextCut::place(int64_t row) const { return base::at(places_, row); }
int64_t ContextCut::rows_of(int rank) const { return base::at(counts_, rank); }

TokenBatch own_tokens(const TokenBatch& tokens) {
  if (tokens.cut == nullptr) return tokens;
  const std::span<const int32_t> rows = tokens.cut->own();
  const size_t all = tokens.ids.size();
  COLLIMATE_CHECK(tokens.cut->all_rows() == static_cast<int64_t>(all), "the cut of another batch");
  return {.ids = rows_of(tokens.ids, rows, all),
          .positions = rows_of(tokens.positions, rows, all),
          .counts = rows_of(tokens.counts, rows, all),
          .noise = rows_of(tokens.noise, rows, all),
          .experts = rows_of(tokens.experts, rows, all),
          .replayed = tokens.replayed,
          .agreement = tokens.agreement};
}

}  // namespace collimate::model

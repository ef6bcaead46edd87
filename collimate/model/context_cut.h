#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/model/rank_line.h"
#include "collimate/shape/context_heads.h"

namespace collimate::model {

struct TokenBatch;

// Context ranks compute each batch together, each of them some of its tokens (context parallelism). They hold the same
// pieces of the weights and call a Model alike, with the same batches. By default there is one rank.
struct ContextRanks : RankLine {
  int rank = 0;
  int ranks = 1;
  shape::ContextKind kind = shape::ContextKind::kGather;
  bool several() const { return ranks > 1; }
  // Gathers values [ranks, each] on the device: this rank has filled its row, and the others' rows are written.
  void gather(const tensor::Exec& exec, float* values, int64_t each) const;
  // Writes to this rank's row of values [ranks, each] the sum of that row over the ranks, by their tree.
  void sum_rows(const tensor::Exec& exec, float* values, int64_t each) const;
  // Exchanges pieces of numbers on the device, which lie side by side in the order of ranks: `floats` [ranks, ranks]
  // has the length of the piece from rank f to rank t at [f, t].
  void exchange(const tensor::Exec& exec, const float* from, float* to, std::span<const int64_t> floats) const;
};

// A piece is a run of adjacent tokens of a sequence that one rank has.
struct TokenPiece {
  int64_t sequence = 0;
  int64_t first = 0;  // row of the batch
  int64_t tokens = 0;
};

// Says which of a batch's T tokens each context rank has. Every sequence is cut into 2 R pieces, of which rank r has
// the r-th from the front and the r-th from the back. As a token attends to all tokens ahead of it, all ranks then have
// equally much to do (Llama Team 2024, arXiv 2407.21783, 3.3.2). Over all sequences the ranks' numbers of tokens differ
// by one at most.
class ContextCut {
 public:
  // `starts` [S + 1] is that of TokenBatch.
  ContextCut(std::span<const int32_t> starts, const ContextRanks& ranks);

  const ContextRanks& ranks() const { return ranks_; }
  int64_t all_rows() const { return static_cast<int64_t>(places_.size()); }  // T
  int64_t own_rows() const { return static_cast<int64_t>(own_.size()); }
  int64_t most_rows() const { return most_; }                     // of the rank with the most
  std::span<const TokenPiece> pieces() const { return pieces_; }  // of this rank, whose rows lie in this order
  std::span<const int32_t> own() const { return own_; }           // [own_rows] the batch's row of each own row
  // Gathered rows lie one rank after another, each rank with room for most_rows(). places() [T] gives the place there
  // of each of the batch's rows, rows() [R most_rows] the batch's row at each place, any if it is not filled.
  std::span<const int32_t> places() const { return places_; }
  std::span<const int32_t> rows() const { return rows_; }
  // Rows that are exchanged for heads lie one rank after another without room between them: in_turn() [T] has the
  // batch's row at each place there, turns() [T] the place of each of the batch's rows.
  std::span<const int32_t> in_turn() const { return in_turn_; }
  std::span<const int32_t> turns() const { return turns_; }
  int64_t rows_of(int rank) const;
  int owner(int64_t row) const { return static_cast<int>(place(row) / most_); }
  int64_t row_there(int64_t row) const { return place(row) % most_; }  // number among its owner's rows

 private:
  int64_t place(int64_t row) const;

  ContextRanks ranks_;
  int64_t most_ = 0;
  std::vector<TokenPiece> pieces_;
  std::vector<int32_t> own_, places_, rows_, in_turn_, turns_;
  std::vector<int64_t> counts_;  // of each rank's rows
};

// Returns the tokens of a batch that this rank has: their ids, positions, counts, noise and experts. Returns the batch
// as it is where it is not cut.
TokenBatch own_tokens(const TokenBatch& tokens);

}  // namespace collimate::model

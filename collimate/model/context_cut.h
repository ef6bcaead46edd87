#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/model/rank_line.h"

namespace collimate::model {

struct TokenBatch;

// The ranks that compute each batch together, every one some of its tokens (context parallelism). They hold the same
// pieces of the weights and call a Model alike, with the same batches. One rank by default.
struct ContextRanks : RankLine {
  int rank = 0;
  int ranks = 1;
  bool several() const { return ranks > 1; }
  // Values [ranks, each] on the device, of which this rank has made its row: the others' come.
  void gather(const tensor::Exec& exec, float* values, int64_t each) const;
  // This rank's row of values [ranks, each] becomes the sum over the ranks, by their tree.
  void sum_rows(const tensor::Exec& exec, float* values, int64_t each) const;
};

// Adjacent tokens of a sequence that one rank has.
struct TokenPiece {
  int64_t sequence = 0;
  int64_t first = 0;  // row of the batch
  int64_t tokens = 0;
};

// Says which of a batch's T tokens each context rank has. Every sequence is cut into 2 R pieces, of which rank r has
// the r-th from the front and the r-th from the back: a token attends to all that are ahead of it, so that all ranks
// have as much to do (Llama Team 2024, arXiv 2407.21783, 3.3.2). Over all sequences they have equally many tokens, but
// for one.
class ContextCut {
 public:
  // `starts` [S + 1] as of TokenBatch.
  ContextCut(std::span<const int32_t> starts, const ContextRanks& ranks);

  const ContextRanks& ranks() const { return ranks_; }
  int64_t all_rows() const { return static_cast<int64_t>(places_.size()); }  // T
  int64_t own_rows() const { return static_cast<int64_t>(own_.size()); }
  int64_t most_rows() const { return most_; }                     // of the rank with the most
  std::span<const TokenPiece> pieces() const { return pieces_; }  // of this rank, which has its rows in their order
  std::span<const int32_t> own() const { return own_; }           // [own_rows] the batch's row of each
  // Where the ranks' rows lie one rank after another, each with room for most_rows(): the place there of each of the
  // batch's rows [T], and the batch's row at each place [R most_rows], any in what is not filled.
  std::span<const int32_t> places() const { return places_; }
  std::span<const int32_t> rows() const { return rows_; }
  int owner(int64_t row) const { return static_cast<int>(place(row) / most_); }
  int64_t row_there(int64_t row) const { return place(row) % most_; }  // among its owner's

 private:
  int64_t place(int64_t row) const;

  ContextRanks ranks_;
  int64_t most_ = 0;
  std::vector<TokenPiece> pieces_;
  std::vector<int32_t> own_, places_, rows_;
};

// A batch's tokens that this rank has, by ids, positions, counts and experts: all of them where it is not cut.
TokenBatch own_tokens(const TokenBatch& tokens);

}  // namespace collimate::model

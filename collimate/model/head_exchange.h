#pragma once

#include <cstdint>
#include <vector>

#include "collimate/model/layers.h"

namespace collimate::model {

// A HeadExchange moves rows between context ranks around a block's attention (Ulysses: Jacobs et al. 2023, arXiv
// 2309.14509). Outside of it a rank has all heads of its own tokens, as attend() takes and gives them; inside, in the
// order of the batch, all T tokens of its own heads (shape::context_heads). Rows are floats on the device, and what is
// returned lies in the step's arena. The context ranks call the same functions in the same order.
class HeadExchange {
 public:
  // Both must outlive this.
  HeadExchange(const Step& step, const Attention& attention);

  const Attention& own() const { return own_; }                                // this rank's heads
  int64_t first_head() const { return own_.first_head - whole_->first_head; }  // of them, among the query heads

  // Returns queries, keys and values of all tokens of this rank's heads, from those of its tokens of all heads.
  const float* bring(const float* qkv) const { return bring(heads_, qkv); }
  // Does the same for what attention gives, and for its gradient.
  const float* bring_outputs(const float* out) const { return bring(outputs_, out); }
  // These do the reverse: `out` gets what attention gives, `qkv` the gradients of queries, keys and values. Gradients
  // of a key-value head that several ranks share are added up in the order of these ranks.
  void give_back_outputs(const float* of_heads, float* out) const { give_back(outputs_, of_heads, out); }
  void give_back_gradients(const float* of_heads, float* qkv) const { give_back(heads_, of_heads, qkv); }

 private:
  // Describes adjacent columns of a rank's heads: `width` of them from `own` on in a row of its heads, and in a row of
  // all heads those from `whole` on for the first `sharers` ranks, the next ones for the next.
  struct Columns {
    int64_t whole = 0, own = 0, width = 0;
    int64_t sharers = 1;
    int64_t first(int rank) const { return whole + rank / sharers * width; }
  };
  struct Rows {
    int64_t whole = 0, own = 0;  // widths
    std::vector<Columns> columns;
  };

  const float* bring(const Rows& how, const float* from) const;
  void give_back(const Rows& how, const float* from, float* to) const;
  // Returns how many numbers each rank sends to each other one, where the rows are those of the sender's tokens or, if
  // `back`, of the receiver's.
  std::vector<int64_t> counts(int64_t width, bool back) const;

  const Step* step_;
  const ContextCut* cut_;
  const Attention* whole_;
  Attention own_;
  Rows heads_, outputs_;
};

}  // namespace collimate::model

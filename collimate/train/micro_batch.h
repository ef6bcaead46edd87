#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/model/model.h"

namespace collimate::train {

// Row ranges [begin, end) of micro-batches over rows in their order: as many whole units of `rows_per_unit` rows as fit
// into `max_tokens` and, unless that is 0, `max_rows`, at least one. InputError when the rows are not whole units.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};
std::vector<RowRange> split_rows(const Batch& rows, int64_t max_tokens, int64_t rows_per_unit, int64_t max_rows = 0);

// Says what is done with routed_experts, the choices that a mixture's routers made when rows were drawn.
enum class RecordedRoutes { kIgnored, kCompared, kReplayed };

// A micro-batch as the model reads it: rows packed without padding, and where the trainable tokens are. The tokens
// ahead of the first trainable one are packed once for adjacent rows that have the same ones, as the samples of a
// prompt do.
struct PackedRows {
  model::TokenBatch tokens;          // T tokens, counted by the rows with something to train that each stands for
  std::vector<int64_t> predictors;   // [M] index in the pack of the token before each trainable token
  std::vector<int32_t> targets;      // [M] the trainable tokens
  std::vector<int64_t> last_tokens;  // [R] index in the pack of each row's last token
  int64_t row_tokens = 0;            // of all rows, each with its own prompt: at least T
};
// InputError when a row is empty, its first token is trainable, `trainable` is not as long as `ids`, or routes that
// are replayed are missing; where they are only compared, rows may lack them. Several context ranks get the same rows,
// with the tokens cut; none, which others with their experts may have, are not cut. With `noise` a token has a key of
// that and the tokens of its row up to it, which does not depend on what is packed beside it.
PackedRows pack_rows(const Batch& rows, RecordedRoutes routes = RecordedRoutes::kIgnored,
                     const model::ContextRanks& context = {}, std::optional<uint64_t> noise = {});

// Row numbers in the order in which rows are packed, and training sums over them: the samples of a prompt together, by
// uid; pairs together, the chosen row first.
std::vector<int64_t> row_order(const Batch& rows);

}  // namespace collimate::train

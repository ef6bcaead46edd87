#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/model/model.h"

namespace collimate::train {

// split_rows() divides rows, in their order, into ranges [begin, end) for micro-batches. Each has as many whole units
// of `rows_per_unit` rows as fit into `max_tokens` and, unless that is 0, `max_rows`, but at least one. It throws
// InputError when the rows are not whole units.
struct RowRange {
  int64_t begin = 0;
  int64_t end = 0;
};
std::vector<RowRange> split_rows(const Batch& rows, int64_t max_tokens, int64_t rows_per_unit, int64_t max_rows = 0);

// Says what is done with routed_experts, the choices that a mixture's routers made when rows were drawn.
enum class RecordedRoutes { kIgnored, kCompared, kReplayed };

// Holds a micro-batch as the model reads it: rows packed without padding, and where the trainable tokens are. Adjacent
// rows that have the same tokens ahead of their first trainable one, as the samples of a prompt do, share these tokens,
// which are packed once if that saves enough.
struct PackedRows {
  model::TokenBatch tokens;         // T tokens; counts: how many rows with something to train each one stands for
  std::vector<int64_t> predictors;  // [M] index in the pack of the token before each trainable token
  std::vector<int32_t> targets;     // [M] the trainable tokens
  std::vector<int64_t> trained;     // [M] index in the pack of each of them
  std::vector<int64_t>
      last_tokens;         // [R] index in the pack of each row's last token ahead of padding (batch/padding.h)
  int64_t row_tokens = 0;  // of all rows, each counted with its own prompt: at least T
};
// Packs rows. Throws InputError when a row is empty, its first token is trainable, `trainable` is not as long as `ids`,
// a row has fewer tokens than it says it has ahead of padding, or routes that are to be replayed are missing; where
// routes are only compared, rows may lack them. Context ranks all give the same rows, whose tokens are cut among them;
// a batch without rows, which keeps up with other ranks' passes, is not cut. With `noise` each token gets a dropout
// key, made of `noise` and the tokens of its row up to it, which does not depend on what is packed beside it.
PackedRows pack_rows(const Batch& rows, RecordedRoutes routes = RecordedRoutes::kIgnored,
                     const model::ContextRanks& context = {}, std::optional<uint64_t> noise = {});

// Returns row numbers in the order in which rows are packed and training sums over them: the samples of a prompt stand
// together, in the order of their uids; pairs stand together, the chosen row first.
std::vector<int64_t> row_order(const Batch& rows);

}  // namespace collimate::train

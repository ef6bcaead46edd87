#include "collimate/train/micro_batch.h"

#include <algorithm>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/batch/padding.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/tensor/ops/attention.h"

namespace collimate::train {

using base::expectation;
using base::InputError;

std::vector<RowRange> split_rows(const Batch& rows, int64_t max_tokens, int64_t rows_per_unit, int64_t max_rows) {
  if (rows.rows() % rows_per_unit != 0)
    throw InputError(
        expectation("train", fmt::format("a multiple of {} rows", rows_per_unit), std::to_string(rows.rows())));
  std::vector<RowRange> ranges;
  int64_t tokens = 0;
  for (int64_t r = 0; r < rows.rows(); r += rows_per_unit) {
    int64_t unit = 0;
    for (int64_t i = r; i < r + rows_per_unit; ++i) unit += rows.length(batch::kIds.name, i);
    const bool full = !ranges.empty() && max_rows > 0 && r + rows_per_unit - ranges.back().begin > max_rows;
    if (ranges.empty() || full || tokens + unit > max_tokens) {
      ranges.push_back({r, r});
      tokens = 0;
    }
    ranges.back().end = r + rows_per_unit;
    tokens += unit;
  }
  return ranges;
}

namespace {

struct Row {
  std::span<const int32_t> ids;
  std::span<const uint8_t> trainable;
  std::span<const int16_t> experts;  // empty unless routes are compared or replayed
  size_t prompt = 0;  // tokens that another row may share: those ahead of the first trainable one, not the last token
  int32_t first_position = 0;
  size_t last = 0;  // the last token ahead of padding
  bool is_trained() const {
    return std::any_of(trainable.begin(), trainable.end(), [](uint8_t t) { return t != 0; });
  }
};

// Returns the index of a row's last token ahead of its padding.
size_t last_of(const Batch& rows, int64_t r, size_t tokens) {
  if (!rows.has(batch::kUnpaddedTokens.name)) return tokens - 1;
  const int64_t unpadded = rows.get(batch::kUnpaddedTokens, r);
  if (unpadded < 1 || unpadded > static_cast<int64_t>(tokens))
    throw InputError(expectation("train", fmt::format("row {} with 1 to {} tokens ahead of its padding", r, tokens),
                                 std::to_string(unpadded)));
  return static_cast<size_t>(unpadded) - 1;
}

Row row_of(const Batch& rows, int64_t r, RecordedRoutes routes) {
  Row row{rows.row(batch::kIds, r), rows.row(batch::kTrainable, r)};
  const bool there = rows.has(batch::kRoutedExperts.name);
  if (routes == RecordedRoutes::kReplayed || (routes == RecordedRoutes::kCompared && there))
    row.experts = rows.row(batch::kRoutedExperts, r);
  if (row.ids.empty() || row.ids.size() != row.trainable.size() || row.trainable[0] != 0)
    throw InputError(expectation("train",
                                 fmt::format("row {} with tokens, one mask entry for each, the first not trainable", r),
                                 fmt::format("{} tokens, {} mask entries", row.ids.size(), row.trainable.size())));
  const auto first = std::find_if(row.trainable.begin(), row.trainable.end() - 1, [](uint8_t t) { return t != 0; });
  row.prompt = static_cast<size_t>(first - row.trainable.begin());
  if (rows.has(batch::kFirstPosition.name))
    row.first_position = static_cast<int32_t>(rows.get(batch::kFirstPosition, r));
  row.last = last_of(rows, r, row.ids.size());
  return row;
}

bool same_prompt(const Row& a, const Row& b) {
  return a.prompt == b.prompt && a.first_position == b.first_position &&
         std::equal(a.ids.begin(), a.ids.begin() + static_cast<int64_t>(a.prompt), b.ids.begin());
}

// Returns the end of the rows from `first` on that share one prompt. Sharing takes one more block of keys and values,
// so that it must save at least as many tokens as a block has.
size_t family_end(const std::vector<Row>& rows, size_t first) {
  size_t end = first + 1;
  while (end < rows.size() && same_prompt(rows[first], rows[end])) ++end;
  const bool worth = (end - first - 1) * rows[first].prompt >= tensor::KvLayout::kBlockTokens;
  return worth ? end : first + 1;
}

class Packer {
 public:
  explicit Packer(std::optional<uint64_t> noise) : noise_(noise) { out_.tokens.starts.push_back(0); }

  // Appends tokens [begin, end) of the row as a sequence that stands for `count` rows. Returns where it begins. The
  // row's tokens ahead of `begin` are at `prompt`.
  int64_t append(const Row& row, int64_t prompt, size_t begin, size_t end, int32_t continued, int64_t count) {
    model::TokenBatch& tokens = out_.tokens;
    if (noise_) append_noise(row, prompt, begin, end);
    const size_t width = row.experts.size() / row.ids.size();
    const auto experts = row.experts.subspan(begin * width, (end - begin) * width);
    tokens.experts.insert(tokens.experts.end(), experts.begin(), experts.end());
    const auto first = static_cast<int64_t>(tokens.ids.size());
    for (size_t t = begin; t < end; ++t) {
      tokens.ids.push_back(row.ids[t]);
      tokens.positions.push_back(row.first_position + static_cast<int32_t>(t));
      tokens.counts.push_back(static_cast<float>(count));
    }
    tokens.starts.push_back(static_cast<int32_t>(tokens.ids.size()));
    tokens.continued.push_back(continued);
    return first;
  }

  // Adds a row whose tokens ahead of `begin` are at `prompt`, by appending its other tokens.
  void add(const Row& row, int64_t prompt, size_t begin, int32_t continued) {
    const int64_t first =
        append(row, prompt, begin, row.ids.size(), continued, row.is_trained() ? 1 : 0) - static_cast<int64_t>(begin);
    for (size_t t = 1; t < row.ids.size(); ++t) {
      if (row.trainable[t] == 0) continue;
      out_.predictors.push_back((t - 1 < begin ? prompt : first) + static_cast<int64_t>(t) - 1);
      out_.targets.push_back(row.ids[t]);
      out_.trained.push_back(first + static_cast<int64_t>(t));
    }
    out_.last_tokens.push_back((row.last < begin ? prompt : first) + static_cast<int64_t>(row.last));
    out_.row_tokens += static_cast<int64_t>(row.ids.size());
  }

  int32_t sequences() const { return static_cast<int32_t>(out_.tokens.continued.size()); }
  PackedRows take() { return std::move(out_); }

 private:
  void append_noise(const Row& row, int64_t prompt, size_t begin, size_t end) {
    std::vector<uint64_t>& noise = out_.tokens.noise;
    uint64_t key = begin == 0 ? base::mix(*noise_, static_cast<uint64_t>(row.first_position))
                              : base::at(noise, prompt + static_cast<int64_t>(begin) - 1);
    for (size_t t = begin; t < end; ++t) noise.push_back(key = base::mix(key, static_cast<uint64_t>(row.ids[t])));
  }

  std::optional<uint64_t> noise_;
  PackedRows out_;
};

}  // namespace

PackedRows pack_rows(const Batch& batch, RecordedRoutes routes, const model::ContextRanks& context,
                     std::optional<uint64_t> noise) {
  std::vector<Row> rows;
  for (int64_t r = 0; r < batch.rows(); ++r) rows.push_back(row_of(batch, r, routes));
  Packer packer(noise);
  for (size_t first = 0; first < rows.size();) {
    const size_t end = family_end(rows, first);
    if (end == first + 1) {
      packer.add(rows[first], 0, 0, -1);
    } else {
      const int32_t sequence = packer.sequences();
      const auto trained =
          std::count_if(rows.begin() + static_cast<int64_t>(first), rows.begin() + static_cast<int64_t>(end),
                        [](const Row& row) { return row.is_trained(); });
      const int64_t prompt = packer.append(rows[first], 0, 0, rows[first].prompt, -1, trained);
      for (size_t r = first; r < end; ++r) packer.add(rows[r], prompt, rows[r].prompt, sequence);
    }
    first = end;
  }
  PackedRows packed = packer.take();
  packed.tokens.replayed = routes == RecordedRoutes::kReplayed;
  if (context.several() && !batch.empty())
    packed.tokens.cut = std::make_shared<model::ContextCut>(packed.tokens.starts, context);
  return packed;
}

std::vector<int64_t> row_order(const Batch& rows) {
  std::vector<std::vector<int64_t>> keys;
  if (rows.has(batch::kPairUid.name)) {
    keys.push_back(rows.all(batch::kPairUid));
  } else {
    for (const Key<int64_t>& key : {batch::kPromptUid, batch::kUid})
      if (rows.has(key.name)) keys.push_back(rows.all(key));
  }
  std::vector<int64_t> order(static_cast<size_t>(rows.rows()));
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int64_t a, int64_t b) {
    for (const std::vector<int64_t>& uids : keys) {
      const int64_t of_a = base::at(uids, a), of_b = base::at(uids, b);
      if (of_a != of_b) return of_a < of_b;
    }
    return false;
  };
  std::stable_sort(order.begin(), order.end(), before);
  return order;
}

}  // namespace collimate::train

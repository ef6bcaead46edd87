#include "collimate/recipe/trained_rows.h"

#include <functional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collimate/batch/standard_keys.h"

namespace collimate::recipe {
namespace {

// Maps what is compared of held-out rows, hashed, to the number of those that have it.
using Counts = std::unordered_map<size_t, int64_t>;

size_t hash_of(std::span<const int32_t> ids) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
}

// Returns what is compared of a row: all of it, or its prompt, which a row of text alone does not have.
std::span<const int32_t> compared(const text::RenderedTokens& row, bool whole) {
  const std::span<const int32_t> ids = row.ids;
  return whole ? ids : ids.first(static_cast<size_t>(row.prompt_tokens));
}

// Counts questions by their prompts. `rows` has their choices.
int64_t count_questions(const Batch& rows, Counts& counts) {
  int64_t all = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    if (r > 0 && rows.get(batch::kPromptUid, r) == rows.get(batch::kPromptUid, r - 1)) continue;
    ++all;
    const auto prompt = rows.row(batch::kIds, r).first(static_cast<size_t>(rows.get(batch::kPromptTokens, r)));
    if (!prompt.empty()) ++counts[hash_of(prompt)];
  }
  return all;
}

int64_t count_examples(const rlhf::RowSource& held, bool whole, Counts& counts) {
  for (int64_t row = 0; row < held.examples(); ++row) {
    const std::vector<text::RenderedTokens> rows = held.rendered(row);
    if (const auto ids = compared(rows.front(), whole); !ids.empty()) ++counts[hash_of(ids)];
  }
  return held.examples();
}

}  // namespace

// Only the held-out rows are kept in memory, as there may be too many others.
std::string trained_rows_warning(const HeldOutRows& held, MeasureKind measured, const rlhf::RowSource& train,
                                 rlhf::RowKind trained) {
  const bool whole = held.source && rows_of(measured) == trained;
  Counts counts;
  const int64_t all = held.source ? count_examples(*held.source, whole, counts) : count_questions(held.rows, counts);
  int64_t both = 0;
  for (int64_t row = 0; row < train.examples(); ++row) {
    const std::vector<text::RenderedTokens> rows = train.rendered(row);
    const auto found = counts.find(hash_of(compared(rows.front(), whole)));
    if (found != counts.end()) both += std::exchange(found->second, 0);
  }
  if (both == 0) return "";
  return fmt::format("{}: {} of {} {} stand in data.train too, and do not show how the model does on others", held.key,
                     both, all, whole ? "rows" : "prompts");
}

}  // namespace collimate::recipe

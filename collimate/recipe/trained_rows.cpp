#include "collimate/recipe/trained_rows.h"

#include <functional>
#include <span>
#include <string_view>
#include <unordered_set>

#include "collimate/batch/standard_keys.h"

namespace collimate::recipe {
namespace {

using Hashes = std::unordered_set<size_t>;

size_t hash_of(std::span<const int32_t> ids) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(ids.data()), ids.size_bytes()});
}

// Returns what is compared of a row: all of it, or its prompt, which a row of text alone does not have.
std::span<const int32_t> compared(const text::RenderedTokens& row, bool whole) {
  const std::span<const int32_t> ids = row.ids;
  return whole ? ids : ids.first(static_cast<size_t>(row.prompt_tokens));
}

// Returns how many questions have a prompt that is trained on, and how many there are. `rows` has their choices.
std::pair<int64_t, int64_t> questions_in(const Batch& rows, const Hashes& trained) {
  int64_t both = 0, all = 0;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    if (r > 0 && rows.get(batch::kPromptUid, r) == rows.get(batch::kPromptUid, r - 1)) continue;
    ++all;
    const auto prompt = rows.row(batch::kIds, r).first(static_cast<size_t>(rows.get(batch::kPromptTokens, r)));
    both += !prompt.empty() && trained.contains(hash_of(prompt)) ? 1 : 0;
  }
  return {both, all};
}

std::pair<int64_t, int64_t> examples_in(const rlhf::RowSource& held, bool whole, const Hashes& trained) {
  int64_t both = 0;
  for (int64_t row = 0; row < held.examples(); ++row) {
    const auto ids = compared(held.rendered(row).front(), whole);
    both += !ids.empty() && trained.contains(hash_of(ids)) ? 1 : 0;
  }
  return {both, held.examples()};
}

}  // namespace

std::string trained_rows_warning(const HeldOutRows& held, MeasureKind measured, const rlhf::RowSource& train,
                                 rlhf::RowKind trained) {
  const bool whole = held.source && rows_of(measured) == trained;
  Hashes hashes;
  for (int64_t row = 0; row < train.examples(); ++row)
    if (const auto ids = compared(train.rendered(row).front(), whole); !ids.empty()) hashes.insert(hash_of(ids));
  const auto [both, all] = held.source ? examples_in(*held.source, whole, hashes) : questions_in(held.rows, hashes);
  if (both == 0) return "";
  return fmt::format("{}: {} of {} {} stand in data.train too, and do not show how the model does on others", held.key,
                     both, all, whole ? "rows" : "prompts");
}

}  // namespace collimate::recipe

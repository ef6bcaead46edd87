#include "collimate/model/step_input.h"

#include <algorithm>
#include <set>

namespace collimate::model {

StepInput::StepInput(const tensor::Exec& exec, const TokenBatch& tokens, Runs runs)
    : rows_(static_cast<int64_t>(tokens.ids.size())), is_noisy_(!tokens.noise.empty()), runs_(std::move(runs)) {
  numbers_ = tokens.ids;
  numbers_.insert(numbers_.end(), tokens.positions.begin(), tokens.positions.end());
  for (const int shift : {0, 32})
    for (const uint64_t key : tokens.noise) numbers_.push_back(static_cast<int32_t>(key >> shift));
  const std::vector<tensor::AttentionRun*> runs_with_tables = all_runs();
  for (const tensor::AttentionRun* run : runs_with_tables) {
    tables_.push_back(numbers_.size());
    const int64_t blocks = tensor::KvLayout::blocks_for(run->first_position + run->tokens);
    numbers_.insert(numbers_.end(), run->blocks, run->blocks + blocks);
  }
  on_device_ = {exec, numbers_};
  for (size_t i = 0; i < tables_.size(); ++i) runs_with_tables[i]->blocks = on_device_.data() + tables_[i];
}

std::vector<tensor::AttentionRun*> StepInput::all_runs() {
  std::vector<tensor::AttentionRun*> all;
  for (tensor::AttentionRun& run : runs_.runs) all.push_back(&run);
  for (tensor::AttentionRun& run : runs_.appended) all.push_back(&run);
  return all;
}

std::vector<tensor::AttentionRun> StepInput::earlier_blocks() const {
  constexpr int64_t kBlock = tensor::KvLayout::kBlockTokens;
  std::vector<tensor::AttentionRun> found;
  std::set<int32_t> seen;
  int64_t rows = 0;
  for (size_t i = 0; i < runs_.runs.size(); ++i) {
    const tensor::AttentionRun& run = runs_.runs[i];
    for (int64_t first = 0; first < run.first_position; first += kBlock) {
      if (!seen.insert(numbers_[tables_[i] + static_cast<size_t>(first / kBlock)]).second) continue;
      const int64_t tokens = std::min(kBlock, run.first_position - first);
      found.push_back({rows, tokens, first, run.blocks});
      rows += tokens;
    }
  }
  return found;
}

}  // namespace collimate::model

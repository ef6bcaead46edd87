#include "collimate/model/step_input.h"

namespace collimate::model {

StepInput::StepInput(const tensor::Exec& exec, const TokenBatch& tokens, Runs runs)
    : rows_(static_cast<int64_t>(tokens.ids.size())), runs_(std::move(runs)) {
  numbers_ = tokens.ids;
  numbers_.insert(numbers_.end(), tokens.positions.begin(), tokens.positions.end());
  std::vector<size_t> tables;  // where each begins
  for (const tensor::AttentionRun& run : runs_.runs) {
    tables.push_back(numbers_.size());
    const int64_t blocks = tensor::KvLayout::blocks_for(run.first_position + run.tokens);
    numbers_.insert(numbers_.end(), run.blocks, run.blocks + blocks);
  }
  on_device_ = {exec, numbers_};
  for (size_t i = 0; i < tables.size(); ++i) runs_.runs[i].blocks = on_device_.data() + tables[i];
}

}  // namespace collimate::model

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/model/runs.h"
#include "collimate/tensor/host_access.h"

namespace collimate::model {

// Holds the tokens of one step where its operations read them: ids, positions and block tables, brought to the device
// at once. It must not move while a step or its backward uses it. Of a batch that is cut it has this rank's tokens.
class StepInput {
 public:
  StepInput(const tensor::Exec& exec, const TokenBatch& tokens, Runs runs);
  StepInput(const StepInput&) = delete;
  StepInput& operator=(const StepInput&) = delete;

  int64_t rows() const { return rows_; }                                                    // T
  std::span<const int32_t> host_ids() const { return std::span(numbers_).first(count()); }  // [T]
  std::span<const int32_t> host_positions() const { return std::span(numbers_).subspan(count(), count()); }
  const int32_t* ids() const { return on_device_.data(); }  // [T] on the device, as positions()
  const int32_t* positions() const { return on_device_.data() + rows_; }
  // Returns the lower and upper halves of the tokens' dropout keys [2, T] on the device; null where nothing is dropped.
  const int32_t* noise() const { return is_noisy_ ? on_device_.data() + 2 * rows_ : nullptr; }
  // There is one run per sequence, or per piece of a batch of which each rank attends for its own tokens; their block
  // tables lie on the device.
  std::span<const tensor::AttentionRun> runs() const { return runs_.runs; }
  std::span<const tensor::Document> documents() const { return runs_.documents; }
  const ContextCut* cut() const { return runs_.cut.get(); }  // null: one rank has all tokens
  // Returns the runs whose keys and values a step appends; their rows are those of all tokens of the batch.
  std::span<const tensor::AttentionRun> appended() const {
    return cut() == nullptr || by_heads() ? runs_.runs : runs_.appended;
  }
  int64_t all_rows() const { return cut() == nullptr ? rows_ : cut()->all_rows(); }
  // Returns whether context ranks exchange the tokens of a batch for heads while a block attends.
  bool by_heads() const { return cut() != nullptr && cut()->ranks().kind == shape::ContextKind::kUlysses; }
  ContextRanks context() const { return cut() == nullptr ? ContextRanks() : cut()->ranks(); }
  // Returns the blocks that hold tokens ahead of the runs, each block once, as runs of those tokens in rows from 0 on.
  std::vector<tensor::AttentionRun> earlier_blocks() const;
  int64_t blocks() const { return runs_.blocks; }
  int64_t last_position() const { return runs_.last_position; }

 private:
  size_t count() const { return static_cast<size_t>(rows_); }
  std::vector<tensor::AttentionRun*> all_runs();

  int64_t rows_;
  bool is_noisy_;
  Runs runs_;
  std::vector<int32_t> numbers_;  // ids, positions, noise, the runs' tables
  std::vector<size_t> tables_;    // where each run's table begins in numbers_, those of `appended` last
  tensor::OnDevice<int32_t> on_device_;
};

}  // namespace collimate::model

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/model/runs.h"
#include "collimate/tensor/host_access.h"

namespace collimate::model {

// The tokens of one step where its operations read them: ids, positions and block tables, brought to the device at
// once. Stays where it is while a step or its backward uses it.
class StepInput {
 public:
  StepInput(const tensor::Exec& exec, const TokenBatch& tokens, Runs runs);
  StepInput(const StepInput&) = delete;
  StepInput& operator=(const StepInput&) = delete;

  int64_t rows() const { return rows_; }                                                    // T
  std::span<const int32_t> host_ids() const { return std::span(numbers_).first(count()); }  // [T]
  std::span<const int32_t> host_positions() const { return std::span(numbers_).subspan(count(), count()); }
  const int32_t* ids() const { return on_device_.data(); }  // [T], as the next on the device
  const int32_t* positions() const { return on_device_.data() + rows_; }
  // One per sequence; their tables lie on the device.
  std::span<const tensor::AttentionRun> runs() const { return runs_.runs; }
  std::span<const tensor::Document> documents() const { return runs_.documents; }
  // Gives those of the runs' blocks that hold tokens ahead of them, each once: runs of those tokens, in rows from 0 on.
  std::vector<tensor::AttentionRun> earlier_blocks() const;
  int64_t blocks() const { return runs_.blocks; }
  int64_t last_position() const { return runs_.last_position; }

 private:
  size_t count() const { return static_cast<size_t>(rows_); }

  int64_t rows_;
  Runs runs_;
  std::vector<int32_t> numbers_;  // ids, positions, the runs' tables
  std::vector<size_t> tables_;    // where each begins
  tensor::OnDevice<int32_t> on_device_;
};

}  // namespace collimate::model

#include "collimate/generate/runner.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>

#include "collimate/base/error.h"

namespace collimate::generate {
namespace {

constexpr int64_t kLogitFloats = int64_t{8} << 20;  // logits that exist at once: 32 MiB

}  // namespace

Runner::Runner(model::Model& model, tensor::Exec exec, int64_t blocks, uint64_t run_seed)
    : model_(model), exec_(exec), cache_(model.shape(), blocks), run_seed_(run_seed) {}

std::span<const DrawnFor> Runner::run(const StepPlan& plan) {
  build_batch(plan);
  const std::span<const std::vector<int32_t>> tables(tables_.data(), plan.runs.size());
  const at::Tensor hidden = model_.forward_cached(batch_, cache_, tables);  // [T, H]
  copy_partial_blocks(plan);
  list_draws(plan);
  draw(gather_rows(hidden));
  return draws_;
}

void Runner::build_batch(const StepPlan& plan) {
  batch_.ids.clear();
  batch_.positions.clear();
  batch_.starts.assign(1, 0);
  if (tables_.size() < plan.runs.size()) tables_.resize(plan.runs.size());
  for (size_t s = 0; s < plan.runs.size(); ++s) {
    const Run& run = plan.runs[s];
    const Sequence& sequence = *run.sequence;
    for (int64_t t = run.first; t < run.first + run.count; ++t) {
      batch_.ids.push_back(sequence.ids[t]);
      batch_.positions.push_back(static_cast<int32_t>(t));
    }
    batch_.starts.push_back(static_cast<int32_t>(batch_.ids.size()));
    tables_[s].clear();
    for (const Block& block : sequence.blocks) tables_[s].push_back(block.id());
  }
}

void Runner::copy_partial_blocks(const StepPlan& plan) {
  const int64_t floats = cache_.block_floats();
  for (const Fork& fork : plan.forks) {
    const int64_t block = fork.sequence->prompt_tokens / kBlockTokens;
    if (fork.sequence->prompt_tokens % kBlockTokens == 0) continue;
    const int32_t from = plan.runs[fork.run].sequence->blocks[block].id();
    const int32_t to = fork.sequence->blocks[block].id();
    for (int64_t layer = 0; layer < model_.shape().layers; ++layer) {
      float* storage = cache_.layer(static_cast<int>(layer));
      std::memcpy(storage + to * floats, storage + from * floats, floats * sizeof(float));
    }
  }
}

void Runner::list_draws(const StepPlan& plan) {
  rows_.clear();
  draws_.clear();
  for (size_t s = 0; s < plan.runs.size(); ++s) {
    if (!plan.runs[s].draws) continue;
    const auto row = static_cast<int32_t>(rows_.size());
    rows_.push_back(batch_.starts[s + 1] - 1);
    draws_.push_back({plan.runs[s].sequence, row, {}});
    for (const Fork& fork : plan.forks) {
      if (fork.run == static_cast<int32_t>(s)) draws_.push_back({fork.sequence, row, {}});
    }
  }
}

at::Tensor Runner::gather_rows(const at::Tensor& hidden) {
  const int64_t width = hidden.size(1);
  const auto rows = static_cast<int64_t>(rows_.size());
  COLLIMATE_CHECK(hidden.is_contiguous() && hidden.size(0) == static_cast<int64_t>(batch_.ids.size()));
  if (rows == hidden.size(0)) return hidden;
  gathered_.resize(rows * width);
  const float* source = hidden.const_data_ptr<float>();
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(gathered_.data() + r * width, source + rows_[r] * width, width * sizeof(float));
  }
  return at::from_blob(gathered_.data(), {rows, width});
}

void Runner::draw(const at::Tensor& hidden) {
  const int64_t vocabulary = model_.shape().vocabulary;
  const auto rows = static_cast<int32_t>(rows_.size());
  const auto piece = static_cast<int32_t>(std::max<int64_t>(1, kLogitFloats / vocabulary));
  size_t first = 0;
  for (int32_t begin = 0; begin < rows; begin += piece) {
    const int32_t end = std::min(rows, begin + piece);
    const at::Tensor logits =
        model_.logits(begin == 0 && end == rows ? hidden : hidden.slice(0, begin, end));  // [R, V]
    const float* data = logits.const_data_ptr<float>();
    const int64_t stride = logits.stride(0);
    size_t last = first;
    while (last < draws_.size() && draws_[last].row < end) ++last;
    exec_.parallel_for(static_cast<int64_t>(last - first), 1, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        DrawnFor& draw = draws_[first + i];
        const Sequence& sequence = *draw.sequence;
        const std::span<const float> row(data + (draw.row - begin) * stride, vocabulary);
        draw.drawn = draw_token(row, sequence.params, sequence.history, {run_seed_, sequence.uid, sequence.length()});
      }
    });
    first = last;
  }
}

}  // namespace collimate::generate

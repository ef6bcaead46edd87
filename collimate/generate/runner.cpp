#include "collimate/generate/runner.h"

#include <algorithm>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/results.h"

namespace collimate::generate {
namespace {

constexpr int64_t kLogitFloats = int64_t{8} << 20;  // most logits that exist at once: 32 MiB

// Returns whether every sequence of the step runs one token (and proposed ones).
bool is_decode(const StepPlan& plan) {
  return std::all_of(plan.runs.begin(), plan.runs.end(), [](const Run& run) { return run.count == 1; });
}

// Asks for the draws after the sequence's last token and after each proposed one, with the history and the random
// number that each would have in a step of its own. row(i) returns the logits after i proposed tokens.
template <class Row>
void ask_for(DrawBatch& batch, const DrawnFor& draw, uint64_t run_seed, const Row& row) {
  const Sequence& sequence = *draw.sequence;
  std::optional<LogitHistory> after;  // the sequence's history and the proposed tokens so far
  for (size_t i = 0; i <= draw.proposed.size(); ++i) {
    const DrawKey key{run_seed, sequence.uid, sequence.length() + static_cast<int64_t>(i)};
    batch.add(row(i), sequence.params, after ? *after : sequence.history, key);
    if (i == draw.proposed.size()) break;
    if (!after) after = sequence.history;
    after->append(draw.proposed[i]);
  }
}

// Keeps the draws up to the first one that is not the proposed token, which is the last that counts.
void keep_while_proposed(DrawnFor& draw, std::span<Drawn> drawn) {
  size_t count = 0;
  for (;; ++count) {
    draw.drawn[count] = std::move(drawn[count]);
    if (count == draw.proposed.size() || draw.proposed[count] != draw.drawn[count].token) break;
  }
  draw.drawn = draw.drawn.first(count + 1);
}

}  // namespace

Runner::Runner(model::Model& model, tensor::Exec exec, int64_t blocks, tensor::KvType kv_type, uint64_t run_seed,
               bool routed)
    : model_(model),
      exec_(exec),
      cache_(model.shape(), kv_type, blocks, exec),
      routed_(model.shape(), blocks, routed),
      run_seed_(run_seed),
      draw_batch_(model.shape().vocabulary) {}

void Runner::release() {
  cache_.release();
  routed_.release();
  gathered_.reset();
}

std::span<const DrawnFor> Runner::run(const StepPlan& plan) {
  const base::FaultPhase phase(is_decode(plan) ? "decode" : "prefill");
  cache_.take();
  routed_.take();
  build_batch(plan);
  const std::span<const std::vector<int32_t>> tables(tables_.data(), plan.runs.size());
  const at::Tensor hidden = forward(tables);
  copy_partial_blocks(plan);
  list_draws(plan);
  draw(gather_rows(hidden));
  return draws_;
}

at::Tensor Runner::forward(std::span<const std::vector<int32_t>> tables) {
  if (!routed_.keeps()) return model_.forward_cached(batch_, cache_, tables);
  model::RoutedExperts chosen;
  at::Tensor hidden = model_.forward_cached(batch_, cache_, tables, &chosen);
  routed_.put(batch_, tables, chosen);
  return hidden;
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
    for (int64_t p = 0; p < run.proposed; ++p) {
      batch_.ids.push_back(sequence.speculation.proposed[p]);
      batch_.positions.push_back(static_cast<int32_t>(run.first + run.count + p));
    }
    batch_.starts.push_back(static_cast<int32_t>(batch_.ids.size()));
    tables_[s].clear();
    for (const Block& block : sequence.blocks) tables_[s].push_back(block.id());
  }
}

void Runner::copy_partial_blocks(const StepPlan& plan) {
  for (const Fork& fork : plan.forks) {
    const int64_t block = fork.sequence->prompt_tokens / kBlockTokens;
    if (fork.sequence->prompt_tokens % kBlockTokens == 0) continue;
    const int32_t from = plan.runs[fork.run].sequence->blocks[block].id();
    const int32_t to = fork.sequence->blocks[block].id();
    copy_block(from, to);
  }
}

void Runner::list_draws(const StepPlan& plan) {
  rows_.clear();
  draws_.clear();
  for (size_t s = 0; s < plan.runs.size(); ++s) {
    const Run& run = plan.runs[s];
    if (!run.draws) continue;
    const auto row = static_cast<int32_t>(rows_.size());
    for (int64_t p = run.proposed; p >= 0; --p) rows_.push_back(batch_.starts[s + 1] - 1 - static_cast<int32_t>(p));
    draws_.push_back({run.sequence, row, std::span(run.sequence->speculation.proposed).first(run.proposed), {}});
    for (const Fork& fork : plan.forks) {
      if (fork.run == static_cast<int32_t>(s)) draws_.push_back({fork.sequence, row, {}, {}});
    }
  }
  size_t total = 0, next = 0;
  for (const DrawnFor& draw : draws_) total += 1 + draw.proposed.size();
  drawn_.resize(total);
  for (DrawnFor& draw : draws_) {
    draw.drawn = std::span(drawn_).subspan(next, 1 + draw.proposed.size());
    next += draw.drawn.size();
  }
}

at::Tensor Runner::gather_rows(const at::Tensor& hidden) {
  const int64_t width = hidden.size(1);
  const auto rows = static_cast<int64_t>(rows_.size());
  COLLIMATE_CHECK(hidden.is_contiguous() && hidden.size(0) == static_cast<int64_t>(batch_.ids.size()));
  if (rows == hidden.size(0)) return hidden;
  if (!gathered_.defined() || gathered_.size(0) < rows)
    gathered_ = tensor::empty_result(exec_, {std::max(rows, hidden.size(0)), width});
  tensor::gather_rows(exec_, tensor::device_data(hidden), width, rows_, tensor::device_data(gathered_));
  return gathered_.slice(0, 0, rows);
}

// Computes logits and draws in pieces of whole draws, with at most kLogitFloats logits at once unless one draw has
// more.
void Runner::draw(const at::Tensor& hidden) {
  const auto rows = static_cast<int32_t>(rows_.size());
  const auto piece = static_cast<int32_t>(std::max<int64_t>(1, kLogitFloats / model_.shape().vocabulary));
  for (size_t first = 0, last = 0; first < draws_.size(); first = last) {
    const int32_t begin = draws_[first].row;
    while (last < draws_.size() && (last == first || draws_[last].end_row() - begin <= piece)) ++last;
    const int32_t end = draws_[last - 1].end_row();
    const at::Tensor logits = model_.from_last_stage({end - begin, model_.shape().vocabulary}, [&] {
      return model_.logits(begin == 0 && end == rows ? hidden : hidden.slice(0, begin, end));  // [R, V]
    });
    draw_from(logits, std::span(draws_).subspan(first, last - first));
  }
}

void Runner::draw_from(const at::Tensor& logits, std::span<DrawnFor> draws) {
  const float* data = tensor::device_data(logits);
  const int64_t stride = logits.stride(0);
  const int32_t begin = draws.front().row;
  for (const DrawnFor& draw : draws) {
    const float* first = data + (draw.row - begin) * stride;
    ask_for(draw_batch_, draw, run_seed_, [&](size_t row) { return first + static_cast<int64_t>(row) * stride; });
  }
  std::span<Drawn> drawn = draw_batch_.run(exec_);
  for (DrawnFor& draw : draws) {
    keep_while_proposed(draw, drawn);
    drawn = drawn.subspan(draw.proposed.size() + 1);
  }
}

}  // namespace collimate::generate

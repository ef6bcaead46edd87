#include "collimate/generate/runner.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"

namespace collimate::generate {
namespace {

constexpr int64_t kLogitFloats = int64_t{8} << 20;  // logits that exist at once: 32 MiB

// Does every sequence of the step go on from its last token alone?
bool is_decode(const StepPlan& plan) {
  return std::all_of(plan.runs.begin(), plan.runs.end(), [](const Run& run) { return run.count == 1; });
}

// Draws position by position, each with the history and the random number that it would have in a step of its own; the
// first draw that is not the proposed token is the last. `row(i)`: logits after i proposed tokens.
template <class Row>
void draw_while_proposed(DrawnFor& draw, uint64_t run_seed, const Row& row) {
  const Sequence& sequence = *draw.sequence;
  std::optional<LogitHistory> after;  // the sequence's, and the tokens drawn here
  size_t count = 0;
  for (;;) {
    const DrawKey key{run_seed, sequence.uid, sequence.length() + static_cast<int64_t>(count)};
    Drawn& drawn = draw.drawn[count];
    drawn = draw_token(row(count), sequence.params, after ? *after : sequence.history, key);
    if (count == draw.proposed.size() || draw.proposed[count] != drawn.token) break;
    if (!after) after = sequence.history;
    after->append(drawn.token);
    ++count;
  }
  draw.drawn = draw.drawn.first(count + 1);
}

}  // namespace

Runner::Runner(model::Model& model, tensor::Exec exec, int64_t blocks, uint64_t run_seed)
    : model_(model),
      exec_(exec),
      cache_(model.shape(), model.weights().options().compute, blocks),
      run_seed_(run_seed) {}

std::span<const DrawnFor> Runner::run(const StepPlan& plan) {
  const base::FaultPhase phase(is_decode(plan) ? "decode" : "prefill");
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
  gathered_.resize(rows * width);
  const float* source = hidden.const_data_ptr<float>();
  for (int64_t r = 0; r < rows; ++r) {
    std::memcpy(gathered_.data() + r * width, source + rows_[r] * width, width * sizeof(float));
  }
  return at::from_blob(gathered_.data(), {rows, width});
}

// Logits of whole draws at a time, as many as there is memory for.
void Runner::draw(const at::Tensor& hidden) {
  const auto rows = static_cast<int32_t>(rows_.size());
  const auto piece = static_cast<int32_t>(std::max<int64_t>(1, kLogitFloats / model_.shape().vocabulary));
  for (size_t first = 0, last = 0; first < draws_.size(); first = last) {
    const int32_t begin = draws_[first].row;
    while (last < draws_.size() && (last == first || draws_[last].end_row() - begin <= piece)) ++last;
    const int32_t end = draws_[last - 1].end_row();
    const at::Tensor logits =
        model_.logits(begin == 0 && end == rows ? hidden : hidden.slice(0, begin, end));  // [R, V]
    draw_from(logits, std::span(draws_).subspan(first, last - first));
  }
}

void Runner::draw_from(const at::Tensor& logits, std::span<DrawnFor> draws) {
  const float* data = logits.const_data_ptr<float>();
  const int64_t stride = logits.stride(0);
  const auto vocabulary = static_cast<size_t>(model_.shape().vocabulary);
  const int32_t begin = draws.front().row;
  exec_.parallel_for(static_cast<int64_t>(draws.size()), 1, [&](int64_t from, int64_t to) {
    for (int64_t i = from; i < to; ++i) {
      const float* first = data + (draws[i].row - begin) * stride;
      draw_while_proposed(draws[i], run_seed_, [&](size_t row) {
        return std::span(first + static_cast<int64_t>(row) * stride, vocabulary);
      });
    }
  });
}

}  // namespace collimate::generate

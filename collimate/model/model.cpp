#include "collimate/model/model.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/model/arch/architecture.h"
#include "collimate/model/forward_record.h"
#include "collimate/model/head.h"
#include "collimate/model/memory_plan.h"
#include "collimate/model/rope_table.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/results.h"

namespace collimate::model {

using tensor::Arena;
using tensor::MemoryScope;
using tensor::Tape;

ForwardRecord::ForwardRecord() : impl(std::make_unique<Impl>()) {}
ForwardRecord::~ForwardRecord() = default;

struct Model::Impl {
  std::shared_ptr<Weights> weights;
  tensor::Exec exec;
  std::unique_ptr<Architecture> architecture;
  RopeCache rope;
  OutputHead head;
  tensor::KvLayout layout;              // of scratch storage
  int segments = 0;                     // of the model itself: none of adapters
  std::vector<int64_t> adapter_widths;  // for the memory plan
  Arena workspace{*exec.device}, gradients{*exec.device};
  std::shared_ptr<std::vector<std::unique_ptr<Arena>>> pool = std::make_shared<std::vector<std::unique_ptr<Arena>>>();

  Impl(std::shared_ptr<Weights> w, tensor::Exec e)
      : weights(std::move(w)),
        exec(e),
        architecture(make_architecture(*weights)),
        rope(weights->shape(), exec),
        head(*weights),
        layout(kv_layout(weights->shape(), tensor::ComputeType::kFloat32)),
        segments(static_cast<int>(weights->shape().layers) + 2),
        adapter_widths(lora_widths(weights->shape(), weights->options().lora)) {}

  MemoryScope scope(const char* purpose) const { return MemoryScope(weights->options().tag + "/" + purpose); }

  // Makes the arenas large enough for a pass, so that what it takes is what the plan says.
  void make_room(const PassFloats& floats, Arena* activations = nullptr) {
    workspace.reset();
    {
      const MemoryScope tagged = scope("workspace");
      workspace.reserve(floats.workspace);
    }
    if (activations == nullptr) return;
    const MemoryScope tagged = scope("activations");
    activations->reserve(floats.activations);
    gradients.reset();
    gradients.reserve(floats.gradients);
  }

  // A step over a batch, for any segment; `kv_storage` and `tape` are set per segment.
  Step step(const StepInput& input, Arena& arena) {
    const int64_t limit = weights->shape().max_positions;
    if (input.last_position() >= limit)
      throw base::InputError(base::expectation("model positions", fmt::format("fewer than {}", limit),
                                               fmt::format("{}", input.last_position() + 1), "shorter sequences"));
    Step step{exec, *weights, arena, input};
    step.rope = architecture->rotary() ? &rope.cover(input.last_position() + 1) : nullptr;
    return step;
  }

  Slot* run_segment(Step& step, int segment, Slot* stream) const {
    if (segment == 0) return architecture->embedding(step);
    if (segment + 1 == segments) return architecture->final_norm(step, stream);
    return architecture->block(step, segment - 1, stream);
  }

  // All segments without a tape; `storage(layer)` gives each block's keys and values.
  template <typename Storage>
  at::Tensor run(Step& step, Storage storage) {
    Slot* stream = run_segment(step, 0, nullptr);
    const Arena::Mark mark = workspace.mark();
    for (int segment = 1; segment < segments; ++segment) {
      workspace.rewind(mark);
      if (segment + 1 < segments) step.kv_storage = storage(segment - 1);
      stream = run_segment(step, segment, stream);
    }
    return to_tensor(*stream);
  }

  at::Tensor to_tensor(const Slot& slot) const {
    at::Tensor out = tensor::empty_result(exec, {slot.rows, slot.width});
    tensor::copy(exec, slot.value, slot.count(), tensor::device_data(out));
    return out;
  }

  float* scratch_storage(Arena& arena, const StepInput& input) const {
    return arena.take(input.blocks() * tensor::kv_block_floats(exec, layout));
  }

  std::unique_ptr<Arena> take_arena() {
    if (pool->empty()) return std::make_unique<Arena>(*exec.device);
    auto arena = std::move(pool->back());
    pool->pop_back();
    return arena;
  }

  void record_all(ForwardRecord::Impl& record, Step& step);
  void record_inputs(ForwardRecord::Impl& record, Step& step);
  const float* segment_backward(ForwardRecord::Impl& record, Step& step, int segment, float* gradient);
};

namespace {

Slot* copy_slot(const tensor::Exec& exec, Arena& arena, const Slot& from) {
  Slot* copy = tensor::make_slot(arena, from.rows, from.width, from.wanted);
  tensor::copy(exec, from.value, from.count(), copy->value);
  return copy;
}

}  // namespace

Model::Model(std::shared_ptr<Weights> weights, tensor::Exec exec)
    : impl_(std::make_unique<Impl>(std::move(weights), exec)) {
  const int64_t head_dim = impl_->weights->shape().head_dim;
  if (head_dim % 4 != 0 || head_dim > 256)
    throw base::InputError(
        base::expectation("model head_dim", "a multiple of 4, at most 256", std::to_string(head_dim)));
}
Model::~Model() = default;

const shape::ModelShape& Model::shape() const { return impl_->weights->shape(); }
Weights& Model::weights() { return *impl_->weights; }
const tensor::Exec& Model::exec() const { return impl_->exec; }

at::Tensor Model::forward_cached(const TokenBatch& tokens, KvCache& cache,
                                 std::span<const std::vector<int32_t>> tables) {
  const MemoryScope tagged = impl_->scope("workspace");
  const StepInput input(impl_->exec, tokens, cached_runs(tokens, tables));
  impl_->make_room(inference_floats(shape(), input.rows(), 0, impl_->adapter_widths));
  Step step = impl_->step(input, impl_->workspace);
  COLLIMATE_CHECK(cache.layout() == kv_layout(shape(), weights().options().compute), "the cache of another model");
  step.kv_bf16 = cache.layout().bf16;
  return impl_->run(step, [&](int layer) { return cache.layer(layer); });
}

at::Tensor Model::forward(const TokenBatch& tokens) {
  const MemoryScope tagged = impl_->scope("workspace");
  const StepInput input(impl_->exec, tokens, scratch_runs(tokens));
  impl_->make_room(inference_floats(shape(), input.rows(), input.blocks(), impl_->adapter_widths));
  Step step = impl_->step(input, impl_->workspace);
  float* storage = impl_->scratch_storage(impl_->workspace, input);
  return impl_->run(step, [&](int) { return storage; });
}

at::Tensor Model::forward_train(const TokenBatch& tokens, Recompute recompute, std::unique_ptr<ForwardRecord>& record) {
  COLLIMATE_CHECK(impl_->weights->options().trained, "frozen weights have no gradients");
  const MemoryScope tagged = impl_->scope("workspace");
  record = std::make_unique<ForwardRecord>();
  ForwardRecord::Impl& kept = *record->impl;
  kept.pool = impl_->pool;
  kept.activations = impl_->take_arena();
  kept.input = std::make_unique<StepInput>(impl_->exec, tokens, scratch_runs(tokens));
  kept.recompute = recompute;
  kept.segments.resize(static_cast<size_t>(impl_->segments));
  impl_->make_room(training_floats(shape(), kept.input->rows(), kept.input->blocks(), recompute, impl_->adapter_widths),
                   kept.activations.get());
  Step step = impl_->step(*kept.input, *kept.activations);
  step.kv_storage = impl_->scratch_storage(impl_->workspace, *kept.input);
  recompute == Recompute::kNone ? impl_->record_all(kept, step) : impl_->record_inputs(kept, step);
  return impl_->to_tensor(*kept.segments.back().output);
}

// Every segment records its tape; its output is the next one's input.
void Model::Impl::record_all(ForwardRecord::Impl& record, Step& step) {
  Slot* stream = nullptr;
  for (int number = 0; number < segments; ++number) {
    auto& segment = base::at(record.segments, number);
    segment.tape = std::make_unique<Tape>(gradients, exec);
    step.tape = segment.tape.get();
    segment.input = stream;
    segment.output = stream = run_segment(step, number, stream);
  }
}

// Keeps each segment's input and the last output; everything between lives in the workspace.
void Model::Impl::record_inputs(ForwardRecord::Impl& record, Step& step) {
  Arena& kept = *record.activations;
  Step scratch{exec, *weights, workspace, step.input, nullptr, step.kv_bf16, step.kv_storage, step.rope};
  const Arena::Mark mark = workspace.mark();
  Slot* stream = run_segment(scratch, 0, nullptr);
  for (int number = 1; number < segments; ++number) {
    Slot* input = copy_slot(exec, kept, *stream);
    input->wanted = true;
    base::at(record.segments, number).input = input;
    workspace.rewind(mark);
    stream = run_segment(scratch, number, copy_slot(exec, workspace, *input));
  }
  record.segments.back().output = copy_slot(exec, kept, *stream);
}

// From dL/doutput of a segment (used up) to dL/dinput, recomputing the segment first where its tape was not kept. Null
// where the input wants none: all below it is frozen.
const float* Model::Impl::segment_backward(ForwardRecord::Impl& record, Step& step, int number, float* gradient) {
  auto& segment = base::at(record.segments, number);
  if (segment.tape == nullptr) {
    segment.tape = std::make_unique<Tape>(gradients, exec);
    step.tape = segment.tape.get();
    segment.output = run_segment(step, number, segment.input);
  }
  segment.output->gradient = gradient;
  segment.output->written = true;
  segment.tape->run();
  segment.tape.reset();
  if (segment.input == nullptr) return gradient;
  if (!segment.input->wanted) return nullptr;
  COLLIMATE_CHECK(segment.input->written, "segment {} gave no gradient", number);
  return segment.input->gradient;
}

void Model::backward(std::unique_ptr<ForwardRecord> record, const at::Tensor& hidden_gradient,
                     const std::function<void(int segment)>& segment_done) {
  const MemoryScope tagged = impl_->scope("workspace");
  ForwardRecord::Impl& kept = *record->impl;
  const Slot& last = *kept.segments.back().output;
  COLLIMATE_CHECK(hidden_gradient.numel() == last.count() && hidden_gradient.scalar_type() == at::kFloat,
                  "expected fp32 [{}, {}]", last.rows, last.width);
  const at::Tensor given = hidden_gradient.contiguous();
  impl_->workspace.reset();
  Step step = impl_->step(*kept.input, impl_->workspace);
  step.kv_storage = impl_->scratch_storage(impl_->workspace, *kept.input);
  const Arena::Mark scratch = impl_->workspace.mark();
  impl_->gradients.reset();
  float* between = impl_->gradients.take(last.count());  // the gradient from one segment to the next
  const Arena::Mark mark = impl_->gradients.mark();
  const float* gradient = tensor::device_data(given);
  int number = impl_->segments - 1;
  for (; number >= 0 && gradient != nullptr; --number) {
    base::fault_point("model.backward");
    if (gradient != between) tensor::copy(impl_->exec, gradient, last.count(), between);
    impl_->workspace.rewind(scratch);
    impl_->gradients.rewind(mark);
    gradient = impl_->segment_backward(kept, step, number, between);
    if (segment_done) segment_done(number);
  }
  if (!segment_done) return;
  for (; number >= 0; --number) segment_done(number);  // frozen, with nothing trained below
  for (int s = impl_->segments; s < impl_->weights->segments(); ++s) segment_done(s);
}

LogProbResult Model::log_probs(const LogProbRequest& request) {
  return impl_->head.log_probs(impl_->exec, *impl_->weights, request);
}
at::Tensor Model::log_probs_backward(const LogProbRequest& request, const at::Tensor& log_prob_gradient,
                                     const at::Tensor& entropy_gradient, const LogProbRecord& record) {
  return impl_->head.log_probs_backward(impl_->exec, *impl_->weights, request, log_prob_gradient, entropy_gradient,
                                        record);
}
at::Tensor Model::logits(const at::Tensor& hidden) { return impl_->head.logits(impl_->exec, *impl_->weights, hidden); }
at::Tensor Model::scores(const at::Tensor& hidden) { return impl_->head.scores(impl_->exec, *impl_->weights, hidden); }
at::Tensor Model::scores_backward(const at::Tensor& hidden, const at::Tensor& score_gradient) {
  return impl_->head.scores_backward(impl_->exec, *impl_->weights, hidden, score_gradient);
}

}  // namespace collimate::model

#include "collimate/model/passes.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {

using tensor::Arena;
using tensor::Tape;

namespace {

Slot* copy_slot(const tensor::Exec& exec, Arena& arena, const Slot& from) {
  Slot* copy = tensor::make_slot(arena, from.rows, from.width, from.wanted);
  tensor::copy(exec, from.value, from.count(), copy->value);
  return copy;
}

}  // namespace

Passes::Passes(std::shared_ptr<Weights> weights, tensor::Exec exec)
    : weights_(std::move(weights)),
      exec_(exec),
      decoder_(*weights_),
      workspace_(*exec.device),
      gradients_(*exec.device) {
  for (const shape::Block& block : weights_->shape().blocks)
    scratch_block_floats_ = std::max(
        scratch_block_floats_, tensor::kv_block_floats(exec_, kv_layout(block.attention, tensor::KvType::kFloat32)));
}

// `kv_storage` and `tape` are set per segment.
Step Passes::step(const StepInput& input, Arena& arena, const Turns* turns) const {
  Step step{exec_, *weights_, arena, input};
  step.turns = turns;
  return step;
}

float* Passes::scratch_storage(const StepInput& input) {
  return workspace_.take(input.blocks() * scratch_block_floats_);
}

void Passes::read_cache(Step& step, KvCache& cache, int layer) {
  step.kv_type = cache.type();
  step.kv_storage = cache.layer(layer);
  if (cache.expanded() == nullptr) return;
  step.latent_type = std::exchange(step.kv_type, expanded_type(cache.type()));
  step.latent_storage = std::exchange(step.kv_storage, cache.expanded());
}

const Slot& Passes::infer(const StepInput& input, const Turns* turns, KvCache* cache, RouterChoices* choices) {
  Step step = this->step(input, workspace_, turns);
  step.choices = choices;
  if (cache == nullptr) step.kv_storage = scratch_storage(input);
  std::vector<tensor::AttentionRun> earlier;
  if (cache != nullptr && cache->expanded() != nullptr) earlier = input.earlier_blocks();
  step.earlier = earlier;
  Slot* stream = decoder_.run(step, 0, nullptr);
  const Arena::Mark mark = workspace_.mark();
  for (int segment = 1; segment < decoder_.segments(); ++segment) {
    workspace_.rewind(mark);
    if (cache != nullptr && segment + 1 < decoder_.segments()) read_cache(step, *cache, segment - 1);
    stream = decoder_.run(step, segment, stream);
  }
  return *stream;
}

const Slot& Passes::record(ForwardRecord::Impl& record, const Turns* turns) {
  record.segments.resize(static_cast<size_t>(decoder_.segments()));
  Step step = this->step(*record.input, *record.activations, turns);
  step.kv_storage = scratch_storage(*record.input);
  step.routers = record.routers.get();
  step.choices = record.choices.get();
  record.recompute == Recompute::kNone ? record_all(record, step) : record_inputs(record, step);
  if (record.routers != nullptr) record.routers->end_forward();
  return *record.segments.back().output;
}

// Every segment records its tape; its output is the next one's input.
void Passes::record_all(ForwardRecord::Impl& record, Step& step) {
  Slot* stream = nullptr;
  for (int number = 0; number < decoder_.segments(); ++number) {
    auto& segment = base::at(record.segments, number);
    segment.tape = std::make_unique<Tape>(gradients_, exec_);
    step.tape = segment.tape.get();
    segment.input = stream;
    segment.output = stream = decoder_.run(step, number, stream);
  }
}

// Keeps each segment's input and the last output; everything between lives in the workspace.
void Passes::record_inputs(ForwardRecord::Impl& record, Step& step) {
  Arena& kept = *record.activations;
  Step scratch = this->step(step.input, workspace_, step.turns);
  scratch.kv_storage = step.kv_storage;
  scratch.routers = step.routers;
  scratch.choices = step.choices;
  const Arena::Mark mark = workspace_.mark();
  Slot* stream = decoder_.run(scratch, 0, nullptr);
  for (int number = 1; number < decoder_.segments(); ++number) {
    Slot* input = copy_slot(exec_, kept, *stream);
    input->wanted = true;
    base::at(record.segments, number).input = input;
    workspace_.rewind(mark);
    stream = decoder_.run(scratch, number, copy_slot(exec_, workspace_, *input));
  }
  record.segments.back().output = copy_slot(exec_, kept, *stream);
}

// Goes from dL/doutput of a segment (used up) to dL/dinput, recomputing the segment first where its tape was not kept.
// Null where the input wants none: all below it is frozen.
const float* Passes::segment_backward(ForwardRecord::Impl& record, Step& step, int number, float* gradient) {
  auto& segment = base::at(record.segments, number);
  if (segment.tape == nullptr) {
    segment.tape = std::make_unique<Tape>(gradients_, exec_);
    step.tape = segment.tape.get();
    segment.output = decoder_.run(step, number, segment.input);
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

void Passes::backward(ForwardRecord::Impl& record, const Turns* turns, const float* hidden_gradient,
                      const std::function<void(int segment)>& segment_done) {
  const int64_t of_hidden = record.segments.back().output->count();
  const int64_t of_stream = record.input->rows() * weights_->shape().hidden;
  workspace_.reset();
  Step step = this->step(*record.input, workspace_, turns);
  step.kv_storage = scratch_storage(*record.input);
  step.routers = record.routers.get();
  step.choices = record.choices.get();
  const Arena::Mark scratch = workspace_.mark();
  gradients_.reset();
  float* between = gradients_.take(std::max(of_hidden, of_stream));  // the gradient from one segment to the next
  const Arena::Mark mark = gradients_.mark();
  const float* gradient = hidden_gradient;
  int number = decoder_.segments() - 1;
  for (; number >= 0 && gradient != nullptr; --number) {
    if (gradient != between)
      tensor::copy(exec_, gradient, number + 1 == decoder_.segments() ? of_hidden : of_stream, between);
    workspace_.rewind(scratch);
    gradients_.rewind(mark);
    gradient = segment_backward(record, step, number, between);
    segment_done(number);
  }
  for (; number >= 0; --number) segment_done(number);  // frozen, with nothing trained below
}

}  // namespace collimate::model

#include "collimate/model/passes.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/context_heads.h"
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
  for (int run = 0; run < decoder_.runs(); ++run)
    gradients_of_runs_.push_back({decoder_.ends(run) || weights_->trains_ahead_of(decoder_.end_segment(run)),
                                  !decoder_.begins(run) && weights_->trains_ahead_of(decoder_.first_segment(run))});
}

// `kv_storage` and `tape` are set per segment.
Step Passes::step(const StepInput& input, Arena& arena, const Turns* turns) const {
  Step step{exec_, *weights_, arena, input};
  step.turns = turns;
  return step;
}

float* Passes::scratch_storage(const StepInput& input) {
  return workspace_.take(input.blocks() * scratch_block_floats(input.by_heads() ? input.context().ranks : 1));
}

int64_t Passes::scratch_block_floats(int head_ranks) const {
  int64_t most = 0;
  for (const shape::Block& block : weights_->shape().blocks) {
    const shape::Attention own = shape::context_heads(block.attention, 0, head_ranks);
    most = std::max(most, tensor::kv_block_floats(exec_, kv_layout(own, tensor::KvType::kFloat32)));
  }
  return most;
}

void Passes::read_cache(Step& step, KvCache& cache, int layer) {
  step.kv_type = cache.type();
  step.kv_storage = cache.layer(layer);
  if (cache.expanded() == nullptr) return;
  step.latent_type = std::exchange(step.kv_type, expanded_type(cache.type()));
  step.latent_storage = std::exchange(step.kv_storage, cache.expanded());
}

Slot* Passes::incoming(const StepInput& input, Arena& arena, int run) const {
  return tensor::make_slot(arena, input.rows(), weights_->shape().hidden, gives_gradient(run));
}

Slot* Passes::infer_blocks(Step& step, int run, KvCache* cache, Slot* stream) {
  const Arena::Mark mark = workspace_.mark();
  for (int segment = std::max(1, decoder_.first_segment(run)); segment < decoder_.end_segment(run); ++segment) {
    workspace_.rewind(mark);
    if (cache != nullptr && segment + 1 < decoder_.segments()) read_cache(step, *cache, segment - 1);
    stream = this->run(step, segment, stream);
  }
  return stream;
}

const Slot& Passes::infer(const StepInput& input, const Turns* turns, KvCache* cache, RouterChoices* choices) {
  Step step = this->step(input, workspace_, turns);
  step.choices = choices;
  if (cache == nullptr) step.kv_storage = scratch_storage(input);
  std::vector<tensor::AttentionRun> earlier;
  if (cache != nullptr && cache->expanded() != nullptr) earlier = input.earlier_blocks();
  step.earlier = earlier;
  const StageRanks& stages = weights_->stages();
  Slot* stream = decoder_.begins(0) ? run(step, 0, nullptr) : incoming(input, workspace_, 0);
  const Arena::Mark mark = workspace_.mark();
  for (int part = 0; part < decoder_.runs(); ++part) {
    if (part > 0) {  // what the run before gave has been sent
      workspace_.rewind(mark);
      stream = incoming(input, workspace_, part);
    }
    if (!decoder_.begins(part)) stages.receive(exec_, stream->value, stream->count(), -1);
    stream = infer_blocks(step, part, cache, stream);
    if (!decoder_.ends(part)) stages.send(exec_, stream->value, stream->count(), 1);
  }
  return *stream;
}

const Slot& Passes::infer_run(const StepInput& input, const Turns* turns, int run, const float* stream,
                              RouterChoices* choices) {
  Step step = this->step(input, workspace_, turns);
  step.choices = choices;
  step.kv_storage = scratch_storage(input);
  Slot* first = decoder_.begins(run) ? this->run(step, 0, nullptr) : incoming(input, workspace_, run);
  if (stream != nullptr) tensor::copy(exec_, stream, first->count(), first->value);
  return *infer_blocks(step, run, nullptr, first);
}

const Slot& Passes::record(ForwardRecord::Impl& record, const Turns* turns, const float* stream) {
  record.segments.resize(static_cast<size_t>(decoder_.segments()));
  Step step = this->step(*record.input, *record.activations, turns);
  step.kv_storage = scratch_storage(*record.input);
  step.routers = record.routers.get();
  step.choices = record.choices.get();
  again_ = {&workspace_, &gradients_, step.kv_storage};
  if (record.recompute == Recompute::kSelective) step.again = &again_;
  record.recompute == Recompute::kFull ? record_inputs(record, step, stream) : record_all(record, step, stream);
  if (record.routers != nullptr) record.routers->end_forward();
  return *base::at(record.segments, decoder_.end_segment(record.run) - 1).output;
}

// Records a tape for every segment; a segment's output is the next one's input.
void Passes::record_all(ForwardRecord::Impl& record, Step& step, const float* from) {
  const int part = record.run;
  Slot* stream = decoder_.begins(part) ? nullptr : incoming(step.input, step.arena, part);
  if (from != nullptr) tensor::copy(exec_, from, stream->count(), stream->value);
  for (int number = decoder_.first_segment(part); number < decoder_.end_segment(part); ++number) {
    auto& segment = base::at(record.segments, number);
    segment.tape = std::make_unique<Tape>(gradients_, exec_);
    step.tape = segment.tape.get();
    segment.input = stream;
    segment.output = stream = run(step, number, stream);
  }
}

// Keeps each segment's input and the last output; everything between lives in the workspace.
void Passes::record_inputs(ForwardRecord::Impl& record, Step& step, const float* from) {
  Arena& kept = *record.activations;
  Step scratch = this->step(step.input, workspace_, step.turns);
  scratch.kv_storage = step.kv_storage;
  scratch.routers = step.routers;
  scratch.choices = step.choices;
  const Arena::Mark mark = workspace_.mark();
  const int part = record.run, first = decoder_.first_segment(part);
  Slot* stream = decoder_.begins(part) ? run(scratch, 0, nullptr) : incoming(step.input, workspace_, part);
  if (from != nullptr) tensor::copy(exec_, from, stream->count(), stream->value);
  for (int number = std::max(1, first); number < decoder_.end_segment(part); ++number) {
    Slot* input = copy_slot(exec_, kept, *stream);
    if (number > first) input->wanted = true;
    base::at(record.segments, number).input = input;
    workspace_.rewind(mark);
    stream = run(scratch, number, copy_slot(exec_, workspace_, *input));
  }
  base::at(record.segments, decoder_.end_segment(part) - 1).output = copy_slot(exec_, kept, *stream);
}

Slot* Passes::run(Step& step, int segment, Slot* stream) const {
  const auto held = weights_->hold_for_pass(segment);
  return decoder_.run(step, segment, stream);
}

// Goes from dL/doutput of a segment, which is used up, to dL/dinput. Recomputes the segment first if its tape was not
// kept. Returns null where the input wants no gradient, as everything ahead of it is frozen.
const float* Passes::segment_backward(ForwardRecord::Impl& record, Step& step, int number, float* gradient) {
  const auto held = weights_->hold_for_pass(number);
  auto& segment = base::at(record.segments, number);
  if (segment.tape == nullptr) {
    segment.tape = std::make_unique<Tape>(gradients_, exec_);
    step.tape = segment.tape.get();
    segment.output = run(step, number, segment.input);
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

const float* Passes::backward(ForwardRecord::Impl& record, const Turns* turns, const float* gradient,
                              const std::function<void(int segment)>& segment_done) {
  const int end = decoder_.end_segment(record.run), first = decoder_.first_segment(record.run);
  const int64_t of_output = base::at(record.segments, end - 1).output->count();
  const int64_t of_stream = record.input->rows() * weights_->shape().hidden;
  workspace_.reset();
  Step step = this->step(*record.input, workspace_, turns);
  step.kv_storage = scratch_storage(*record.input);
  step.routers = record.routers.get();
  step.choices = record.choices.get();
  again_ = {&workspace_, &gradients_, step.kv_storage};
  const Arena::Mark scratch = workspace_.mark();
  gradients_.reset();
  float* between = gradients_.take(std::max(of_output, of_stream));  // the gradient from one segment to the next
  const Arena::Mark mark = gradients_.mark();
  int number = end - 1;
  for (; number >= first && gradient != nullptr; --number) {
    if (gradient != between) tensor::copy(exec_, gradient, number + 1 == end ? of_output : of_stream, between);
    workspace_.rewind(scratch);
    gradients_.rewind(mark);
    gradient = segment_backward(record, step, number, between);
    segment_done(number);
  }
  for (; number >= first; --number) {  // frozen, with nothing trained ahead
    weights_->hold_for_pass(number);   // ranks that share the weights all hold the same segments
    segment_done(number);
  }
  return gradient;
}

}  // namespace collimate::model

#include "collimate/model/model.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/model/forward_record.h"
#include "collimate/model/head.h"
#include "collimate/model/memory_plan.h"
#include "collimate/model/passes.h"
#include "collimate/model/rope_table.h"
#include "collimate/shape/mixture.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/results.h"

namespace collimate::model {

using tensor::Arena;
using tensor::MemoryScope;

ForwardRecord::ForwardRecord() : impl(std::make_unique<Impl>()) {}
ForwardRecord::~ForwardRecord() = default;

struct Model::Impl {
  std::shared_ptr<Weights> weights;
  tensor::Exec exec;
  Passes passes;
  PassPlan plan;
  int64_t longest;
  RopeCache rope, own_rope;
  Turns turned;
  OutputHead head;
  std::shared_ptr<std::vector<std::unique_ptr<Arena>>> pool = std::make_shared<std::vector<std::unique_ptr<Arena>>>();

  Impl(std::shared_ptr<Weights> w, tensor::Exec e)
      : weights(std::move(w)),
        exec(e),
        passes(weights, exec),
        plan(weights->whole_shape(), weights->options(), *exec.device),
        longest(weights->options().longest_tokens),
        rope(rope_inverse_frequencies(weights->shape(), longest), exec, rope_magnitude(weights->shape())),
        own_rope(own_inverse_frequencies(weights->shape()), exec),
        head(*weights) {}

  MemoryScope scope(const char* purpose) const { return MemoryScope(weights->options().tag + "/" + purpose); }

  // Makes the arenas large enough for a pass, so that it takes exactly what the plan says.
  void make_room(const PassFloats& floats, Arena* activations = nullptr) {
    passes.workspace().reset();
    {
      const MemoryScope tagged = scope("workspace");
      passes.workspace().reserve(floats.workspace);
    }
    if (activations == nullptr) return;
    const MemoryScope tagged = scope("activations");
    activations->reserve(floats.activations);
    passes.gradients().reset();
    passes.gradients().reserve(floats.gradients);
  }

  // Returns the largest number of tokens among ranks that share experts, as any of them may get the rows of all.
  int64_t most_tokens(int64_t tokens) const { return weights->experts().most(tokens); }

  // Takes part, without tokens, in a forward of other ranks.
  void idle(int64_t most) {
    const MemoryScope tagged = scope("workspace");
    const StepInput nothing(exec, {}, {});
    const Turns* none = turns(nothing);
    make_room(plan.inference(most, 0));
    passes.infer(nothing, none, nullptr);
  }

  // Returns the rope tables for a batch; null if no block is rotary. Throws InputError for positions beyond the
  // model's.
  const Turns* turns(const StepInput& input) {
    const int64_t limit = longest_positions(weights->shape(), longest);
    if (input.last_position() >= limit)
      throw base::InputError(base::expectation("model positions", fmt::format("fewer than {}", limit),
                                               fmt::format("{}", input.last_position() + 1), "shorter sequences"));
    if (!passes.decoder().rotary()) return nullptr;
    const int64_t positions = input.last_position() + 1;
    turned = {rope.cover(positions), own_rope.cover(positions)};
    return &turned;
  }

  // Returns the hidden states on the last stage, zeros on the others.
  at::Tensor hidden_of(const Slot& slot) const {
    if (passes.decoder().ends()) return to_tensor(slot);
    return tensor::empty_result(exec, {slot.rows, weights->shape().table_width()}).zero_();
  }

  at::Tensor to_tensor(const Slot& slot) const {
    at::Tensor out = tensor::empty_result(exec, {slot.rows, slot.width});
    tensor::copy(exec, slot.value, slot.count(), tensor::device_data(out));
    return out;
  }

  // Returns the values of the stream that a run is given; null for the run that begins the model.
  const float* given(int run, const at::Tensor& stream, const StepInput& input) const {
    const bool begins = passes.decoder().begins(run);
    COLLIMATE_CHECK(begins != stream.defined() && (begins || stream.size(0) == input.rows()), "run {} of stage {}", run,
                    weights->stages().place.rank);
    return begins ? nullptr : tensor::device_data(stream);
  }

  // Returns null where nobody asks for choices. Throws InputError when they are asked of a model without experts.
  std::unique_ptr<RouterChoices> choices(const TokenBatch& tokens, bool keep) const {
    if (!keep && tokens.experts.empty()) return nullptr;
    if (shape::experts_of(weights->shape()) == nullptr)
      throw base::InputError(base::expectation("routed_experts", "a mixture of experts", "a model without experts"));
    return std::make_unique<RouterChoices>(exec, weights->shape(), tokens, keep);
  }

  // Returns the segments that the head reads; none on stages without the head.
  std::vector<int> head_segments() const {
    if (!passes.decoder().ends()) return {};
    std::vector<int> found;
    for (const int index : head.params())
      if (const int s = base::at(weights->params(), index).segment; std::ranges::find(found, s) == found.end())
        found.push_back(s);
    return found;
  }
  // Lets go of a segment of the head that a backward has passed.
  void passed(ForwardRecord::Impl& record, int segment) const {
    const std::vector<int> of_head = head_segments();
    for (size_t i = 0; i < record.head.size(); ++i)
      if (of_head[i] == segment) record.head[i] = {};
  }

  std::unique_ptr<Arena> take_arena() {
    if (pool->empty()) return std::make_unique<Arena>(*exec.device);
    auto arena = std::move(pool->back());
    pool->pop_back();
    return arena;
  }
};

Model::Model(std::shared_ptr<Weights> weights, tensor::Exec exec)
    : impl_(std::make_unique<Impl>(std::move(weights), exec)) {
  for (const shape::Block& block : shape().blocks)
    if (const int64_t head_dim = block.attention.head_dim; head_dim % 4 != 0 || head_dim > 256)
      throw base::InputError(
          base::expectation("model head_dim", "a multiple of 4, at most 256", std::to_string(head_dim)));
}
Model::~Model() = default;

const shape::ModelShape& Model::shape() const { return impl_->weights->shape(); }
Weights& Model::weights() { return *impl_->weights; }
const tensor::Exec& Model::exec() const { return impl_->exec; }

void Model::release() {
  impl_->passes.workspace().release();
  impl_->passes.gradients().release();
  for (const auto& arena : *impl_->pool) arena->release();
  impl_->pool->clear();
  impl_->head.release();
}

at::Tensor Model::forward_cached(const TokenBatch& tokens, KvCache& cache, std::span<const std::vector<int32_t>> tables,
                                 RoutedExperts* chosen) {
  const MemoryScope tagged = impl_->scope("workspace");
  COLLIMATE_CHECK(tokens.cut == nullptr, "a cache keeps the keys and values of one rank's tokens");
  const StepInput input(impl_->exec, tokens, cached_runs(tokens, tables));
  const Turns* turns = impl_->turns(input);
  COLLIMATE_CHECK(cache.layouts() == kv_layouts(shape(), cache.type()), "the cache of another model");
  impl_->make_room(impl_->plan.inference(impl_->most_tokens(input.rows()), 0));
  const auto choices = impl_->choices(tokens, chosen != nullptr);
  at::Tensor hidden = impl_->hidden_of(impl_->passes.infer(input, turns, &cache, choices.get()));
  if (chosen != nullptr) {
    choices->join(weights().stages());
    *chosen = choices->chosen();
  }
  return hidden;
}

bool Model::end_step(bool more) {
  const ExpertRanks& ranks = weights().experts();
  if (!ranks.several()) return more;
  while (true) {
    const int64_t most = ranks.most(more ? 0 : -1);  // ranks that still make a forward give its number of tokens
    if (most <= 0) return most == 0;
    impl_->idle(most);
  }
}

at::Tensor Model::forward(const TokenBatch& tokens) {
  const MemoryScope tagged = impl_->scope("workspace");
  const TokenBatch own = own_tokens(tokens);
  const StepInput input(impl_->exec, own, scratch_runs(tokens));
  const Turns* turns = impl_->turns(input);
  const int64_t most = impl_->most_tokens(input.all_rows());
  impl_->make_room(impl_->plan.inference(most, input.blocks(), input.context()));
  const auto choices = impl_->choices(own, false);
  at::Tensor hidden = impl_->hidden_of(impl_->passes.infer(input, turns, nullptr, choices.get()));
  if (choices != nullptr) choices->tell();
  return hidden;
}

at::Tensor Model::forward_run(const TokenBatch& tokens, int run, const at::Tensor& stream) {
  const MemoryScope tagged = impl_->scope("workspace");
  const TokenBatch own = own_tokens(tokens);
  const StepInput input(impl_->exec, own, scratch_runs(tokens));
  const Turns* turns = impl_->turns(input);
  const int64_t most = impl_->most_tokens(input.all_rows());
  impl_->make_room(impl_->plan.inference(most, input.blocks(), input.context()));
  const auto choices = impl_->choices(own, false);
  const float* given = impl_->given(run, stream, input);
  at::Tensor made = impl_->to_tensor(impl_->passes.infer_run(input, turns, run, given, choices.get()));
  if (choices != nullptr) choices->tell();
  return made;
}

at::Tensor Model::forward_train(const TokenBatch& tokens, Recompute recompute, std::unique_ptr<ForwardRecord>& record,
                                const at::Tensor& stream, int run) {
  COLLIMATE_CHECK(impl_->weights->options().trained, "frozen weights have no gradients");
  const bool drops = impl_->weights->options().lora.dropout > 0;
  COLLIMATE_CHECK(tokens.noise.size() == (drops ? tokens.ids.size() : 0), "{} keys", tokens.noise.size());
  const MemoryScope tagged = impl_->scope("workspace");
  record = std::make_unique<ForwardRecord>();
  ForwardRecord::Impl& kept = *record->impl;
  kept.pool = impl_->pool;
  kept.activations = impl_->take_arena();
  const TokenBatch own = own_tokens(tokens);
  kept.input = std::make_unique<StepInput>(impl_->exec, own, scratch_runs(tokens));
  kept.recompute = recompute;
  kept.run = run;
  if (!tokens.counts.empty() && shape::experts_of(shape()) != nullptr)
    kept.routers = std::make_unique<RouterNotes>(impl_->exec, shape(), own.counts);
  kept.choices = impl_->choices(own, false);
  const Turns* turns = impl_->turns(*kept.input);
  const StepInput& input = *kept.input;
  const int64_t most = impl_->most_tokens(input.all_rows());
  impl_->make_room(impl_->plan.training(most, input.blocks(), recompute, input.context()), kept.activations.get());
  at::Tensor hidden = impl_->to_tensor(impl_->passes.record(kept, turns, impl_->given(run, stream, input)));
  if (kept.choices != nullptr) kept.choices->tell();
  if (ends(run)) kept.head = hold_head();
  return hidden;
}

std::vector<Weights::Held> Model::hold_head() {
  std::vector<Weights::Held> held;
  for (const int segment : impl_->head_segments()) held.push_back(weights().hold(segment));
  return held;
}

std::vector<float> Model::router_load(const ForwardRecord& record) {
  const RouterNotes* routers = record.impl->routers.get();
  return routers == nullptr ? std::vector<float>() : routers->load();
}

void Model::set_router_loss(ForwardRecord& record, std::span<const float> scores, float squares) {
  COLLIMATE_CHECK(record.impl->routers != nullptr, "a forward without counts");
  record.impl->routers->set_loss(scores, squares);
}

at::Tensor Model::backward(std::unique_ptr<ForwardRecord> record, const at::Tensor& gradient,
                           const std::function<void(int segment)>& segment_done) {
  const MemoryScope tagged = impl_->scope("workspace");
  ForwardRecord::Impl& kept = *record->impl;
  at::Tensor given;
  const float* slopes = nullptr;
  if (takes_gradient(kept.run)) {
    const Slot& last = *base::at(kept.segments, impl_->passes.decoder().end_segment(kept.run) - 1).output;
    COLLIMATE_CHECK(gradient.numel() == last.count() && gradient.scalar_type() == at::kFloat, "expected fp32 [{}, {}]",
                    last.rows, last.width);
    given = gradient.contiguous();
    // A context rank without tokens has no gradient, but takes part in the others' exchanges.
    slopes = last.rows == 0 ? last.value : tensor::device_data(given);
  }
  const float* of_stream = impl_->passes.backward(kept, impl_->turns(*kept.input), slopes, [&](int segment) {
    base::fault_point("model.backward");
    impl_->passed(kept, segment);
    if (!segment_done) return;
    segment_done(segment);
    if (const int experts = impl_->weights->expert_segment(segment); experts >= 0) segment_done(experts);
  });
  if (kept.choices != nullptr) kept.choices->tell();
  if (segment_done)
    for (int s = impl_->passes.decoder().segments(); !impl_->weights->is_of_experts(s); ++s) segment_done(s);
  if (!gives_gradient(kept.run)) return {};
  at::Tensor passed = tensor::empty_result(exec(), {kept.input->rows(), stream_width()});
  tensor::copy(exec(), of_stream, passed.numel(), tensor::device_data(passed));
  return passed;
}

int64_t Model::stream_width() const { return shape().hidden; }
bool Model::ends(int run) const { return impl_->passes.decoder().ends(run); }
bool Model::takes_gradient(int run) const { return impl_->passes.takes_gradient(run); }
bool Model::gives_gradient(int run) const { return impl_->passes.gives_gradient(run); }

at::Tensor Model::from_last_stage(at::IntArrayRef sizes, const std::function<at::Tensor()>& make) {
  const StageRanks& stages = weights().stages();
  at::Tensor values = stages.place.is_last() ? make() : tensor::empty_result(exec(), sizes);
  if (!stages.several()) return values;
  COLLIMATE_CHECK(values.sizes() == sizes, "other sizes");
  values = values.contiguous();
  stages.share_last(exec(), tensor::device_data(values), values.numel());
  return values;
}

LogProbResult Model::log_probs(const LogProbRequest& request) {
  return impl_->head.log_probs(impl_->exec, *impl_->weights, request);
}
at::Tensor Model::log_probs_backward(const LogProbRequest& request, const LogProbGradients& gradients,
                                     const LogProbRecord& record) {
  return impl_->head.log_probs_backward(impl_->exec, *impl_->weights, request, gradients, record);
}
at::Tensor Model::logits(const at::Tensor& hidden) { return impl_->head.logits(impl_->exec, *impl_->weights, hidden); }
at::Tensor Model::scores(const at::Tensor& hidden) { return impl_->head.scores(impl_->exec, *impl_->weights, hidden); }
at::Tensor Model::scores_backward(const at::Tensor& hidden, const at::Tensor& score_gradient) {
  return impl_->head.scores_backward(impl_->exec, *impl_->weights, hidden, score_gradient);
}

}  // namespace collimate::model

#include "collimate/model/experts.h"

#include <utility>

#include "collimate/base/at.h"
#include "collimate/model/expert_exchange.h"
#include "collimate/model/made_again.h"
#include "collimate/model/recording.h"
#include "collimate/model/router_choices.h"
#include "collimate/model/router_notes.h"
#include "collimate/tensor/ops/embedding.h"
#include "collimate/tensor/ops/experts.h"

namespace collimate::model {
namespace {

using shape::Part;
using tensor::ExpertRows;
using tensor::Tape;

int32_t* take_numbers(Step& step, int64_t count) {
  static_assert(sizeof(int32_t) == sizeof(float));
  return reinterpret_cast<int32_t*>(step.arena.take(count));
}

ExpertLayer::Matrices find_matrices(const Weights& weights, Part part, int segment) {
  ExpertLayer::Matrices found;
  for (int i = weights.index_of(part, segment); base::at(weights.params(), i).runs_in == segment; ++i) {
    const shape::ParamSpec& spec = base::at(weights.params(), i);
    const bool bias = spec.kind == shape::ParamKind::kBias;
    if (spec.part == part && (bias || spec.fused > 0) && !spec.absent())
      (bias ? found.biases : found.weights).push_back(i);
    if (static_cast<size_t>(i) + 1 == weights.params().size()) break;
  }
  if (found.weights.empty()) return found;  // another stage has them
  found.in = base::at(weights.params(), found.weights.front()).sizes[1];
  found.out = shape::fused_rows(weights.params(), found.weights.front());
  return found;
}

// Says where the rows of all experts are, and the weights of their sums.
struct Routing {
  ExpertRows rows;
  Slot* weights = nullptr;  // [T, K]
};

Routing route(Step& step, const ExpertLayer& layer, Slot* x) {
  const shape::Experts& how = layer.how;
  Slot* logits = linear(step, layer.router, x);
  const int64_t tokens = logits->rows, rows = tokens * how.per_token;
  Slot* weights = tensor::make_slot(step.arena, tokens, how.per_token, logits->wanted);
  int32_t* kept = step.choices == nullptr ? nullptr : step.choices->kept(layer.number);
  const tensor::Routed routed{step.arena.take(tokens * how.count), kept != nullptr ? kept : take_numbers(step, rows),
                              weights->value, how.sigmoid ? nullptr : step.arena.take(tokens)};
  const float* correction = layer.correction < 0 ? nullptr : step.weights.param(layer.correction);
  tensor::route(step.exec, how, logits->value, tokens, correction, routed);
  if (step.choices != nullptr) step.choices->compare(how, routed, layer.number);
  if (step.routers != nullptr) step.routers->measure(step.exec, how, routed, layer.number);
  const ExpertRows sorted{take_numbers(step, how.count + 1), take_numbers(step, rows), take_numbers(step, rows)};
  tensor::sort_by_expert(step.exec, how, routed.choices, tokens, sorted);
  record(step, weights, [=, exec = step.exec, tape = step.tape, notes = step.routers](const float* dweights) {
    const tensor::LoadSlopes loss = notes == nullptr ? tensor::LoadSlopes{} : notes->loss();
    tensor::route_backward(exec, how, routed, tokens, dweights, loss, only_target(*tape, *logits));
  });
  return {sorted, weights};
}

// Returns the tokens of x by row: row i gets the token that rows.tokens[i] names.
Slot* gather(Step& step, Slot* x, const ExpertRows& rows, int64_t count) {
  Slot* out = tensor::make_slot(step.arena, count, x->width, x->wanted);
  tensor::embedding(step.exec, x->value, x->rows, x->width, rows.tokens, count, out->value);
  record(step, out, [=, exec = step.exec, tape = step.tape](const float* dy) {
    tensor::embedding_backward(exec, dy, rows.tokens, count, x->rows, x->width, tape->zeroed_target(*x));
  });
  return out;
}

void multiply_backward(const tensor::Exec& exec, Weights& weights, Tape& tape, const ExpertLayer::Matrices& by,
                       const int32_t* starts, Slot& x, const float* dy) {
  const tensor::ComputeType type = weights.options().compute;
  if (weights.trains(by.weights.front())) {
    std::vector<float*> gradients;
    for (const int w : by.weights) gradients.push_back(weights.param_gradient(w));
    tensor::expert_grad_weight(exec, type, dy, x.value, starts, by.out, by.in, gradients);
  }
  if (!x.wanted) return;
  std::vector<const float*> values;
  for (const int w : by.weights) values.push_back(weights.param(w));
  tensor::expert_grad_input(exec, type, dy, starts, values, by.out, by.in, only_target(tape, x));
}

// Returns [R, out]: each row of x [R, in] times the matrix of its expert.
Slot* multiply(Step& step, const ExpertLayer::Matrices& by, const int32_t* starts, Slot* x) {
  const bool recorded = step.tape != nullptr && (x->wanted || step.weights.trains(by.weights.front()));
  Slot* out = tensor::make_slot(step.arena, x->rows, by.out, recorded);
  std::vector<const tensor::LinearPanels*> panels;
  for (const int w : by.weights) panels.push_back(&step.weights.panels(w));
  tensor::expert_linear(step.exec, x->value, starts, panels, out->value);
  record(step, out, [&by, starts, x, &weights = step.weights, exec = step.exec, tape = step.tape](const float* dy) {
    multiply_backward(exec, weights, *tape, by, starts, *x, dy);
  });
  return out;
}

// Adds the bias of its expert to each row, in place. x has one reader behind this.
void add_biases(Step& step, const ExpertLayer::Matrices& by, const int32_t* starts, Slot* x) {
  if (by.biases.empty()) return;
  std::vector<const float*> values;
  for (const int b : by.biases) values.push_back(step.weights.param(b));
  tensor::add_expert_bias(step.exec, starts, values, by.out, x->value);
  if (!step.weights.trains(by.biases.front())) return;
  record(step, x, [&by, starts, &weights = step.weights, exec = step.exec](const float* dy) {
    std::vector<float*> gradients;
    for (const int b : by.biases) gradients.push_back(weights.param_gradient(b));
    tensor::expert_grad_bias(exec, dy, starts, by.out, gradients);
  });
}

using Exchange = std::shared_ptr<const ExpertExchange>;

// Sends this rank's rows to the ranks of their experts, and returns the rows for the experts that it has.
Slot* bring(Step& step, const Exchange& exchange, Slot* x) {
  Slot* out = tensor::make_slot(step.arena, exchange->rows(), x->width, x->wanted);
  exchange->bring(step.arena, x->value, x->width, out->value);
  record(step, out, [=, &scratch = step.arena, tape = step.tape](const float* dy) {
    exchange->take_back(scratch, dy, x->width, only_target(*tape, *x));
  });
  return out;
}

// Returns this rank's own `rows` rows, as the experts on their ranks made them.
Slot* take_back(Step& step, const Exchange& exchange, Slot* x, int64_t rows) {
  Slot* out = tensor::make_slot(step.arena, rows, x->width, x->wanted);
  exchange->take_back(step.arena, x->value, x->width, out->value);
  record(step, out, [=, &scratch = step.arena, tape = step.tape](const float* dy) {
    exchange->bring(scratch, dy, x->width, only_target(*tape, *x));
  });
  return out;
}

// Returns what each row's expert makes of it.
Slot* run_experts(Step& step, const ExpertLayer& layer, const int32_t* starts, Slot* rows) {
  Slot* inner = multiply(step, layer.up, starts, rows);
  add_biases(step, layer.up, starts, inner);
  MadeAgain activated(step, [&how = layer.mlp, inner](Step& s) { return activate(s, how, inner); });
  Slot* given = multiply(step, layer.down, starts, activated.slot());
  activated.has_been_read(step);
  step.weights.tensor().sum(step.exec, given->value, given->count());  // each tensor rank has some of their inputs
  add_biases(step, layer.down, starts, given);
  return given;
}

// Does the same where other ranks have some of the experts.
Slot* run_shared_experts(Step& step, const ExpertLayer& layer, const int32_t* starts, Slot* rows) {
  const auto exchange =
      std::make_shared<const ExpertExchange>(step.exec, layer.how, step.weights.experts(), starts, rows->rows);
  if (step.tape != nullptr) step.tape->push([exchange] {});  // keeps it until the backward of the last product has run
  Slot* given = run_experts(step, layer, exchange->starts(), bring(step, exchange, rows));
  return take_back(step, exchange, given, rows->rows);
}

// Returns stream + Σ weight · row, over the rows of each token.
Slot* add_rows(Step& step, Slot* rows, const int32_t* places, Slot* weights, Slot* stream) {
  Slot* out = stream_to_add_to(step, stream, stream->wanted || rows->wanted || weights->wanted);
  const tensor::Combination how{places, weights->value, weights->rows, weights->width, stream->width};
  tensor::combine_experts(step.exec, how, rows->value, out->value);
  record(step, out, [=, exec = step.exec, tape = step.tape](const float* dy) {
    tensor::combine_experts_backward(exec, how, dy, rows->value, only_target(*tape, *rows),
                                     only_target(*tape, *weights));
    pass_through(exec, *tape, *out, *stream);
  });
  return out;
}

// Adds the experts that every token passes.
Slot* add_shared(Step& step, const ExpertLayer& layer, Slot* x, Slot* stream) {
  Slot* inner = activate(step, {.intermediate = layer.how.shared}, linear(step, layer.shared_up, spread(step, x)));
  if (!layer.how.shared_gate) return add_linear(step, layer.shared_down, inner, stream);
  Slot* weights = sigmoid(step, linear(step, layer.shared_gate, x));
  return add_rows(step, linear(step, layer.shared_down, inner), nullptr, weights, stream);
}

}  // namespace

ExpertLayer find_experts(const Weights& weights, int segment, int number) {
  shape::Mlp mlp = base::at(weights.shape().blocks, segment - 1).mlp;
  const shape::Experts how = mlp.experts;
  mlp.intermediate = how.intermediate;
  ExpertLayer layer{how, mlp, number, find_linear(weights, Part::kRouter, segment)};
  if (!how.router_bias) layer.correction = std::exchange(layer.router.bias, -1);
  layer.up = find_matrices(weights, Part::kExpertUp, segment);
  layer.down = find_matrices(weights, Part::kExpertDown, segment);
  if (how.shared == 0) return layer;
  layer.shared_up = find_linear(weights, Part::kUp, segment);
  layer.shared_down = find_linear(weights, Part::kDown, segment);
  if (how.shared_gate) layer.shared_gate = find_linear(weights, Part::kSharedGate, segment);
  return layer;
}

Slot* add_experts(Step& step, const ExpertLayer& layer, Slot* x, Slot* stream) {
  const Routing routing = route(step, layer, x);
  const auto run = step.weights.experts().several() ? run_shared_experts : run_experts;
  Slot* rows = gather(step, spread(step, x), routing.rows, x->rows * layer.how.per_token);
  Slot* given = run(step, layer, routing.rows.starts, rows);
  stream = add_rows(step, given, routing.rows.places, routing.weights, stream);
  return layer.how.shared == 0 ? stream : add_shared(step, layer, x, stream);
}

}  // namespace collimate::model

// Compares linear + log-prob over the vocabulary, forward and backward, with ATen's linear, log_softmax and gather and
// their autograd, in one process:
//   bench_log_prob [rounds] [15m 110m 0.5b] [float32 bfloat16] [512 2048]
// Width and vocabulary are a model's, with so many rows; the gradients are those of hidden states and weight. Ours runs
// in two ways: "kept" keeps the logits for the backward if they fit what a model records, as training does; "again"
// computes them twice and never holds [rows, vocabulary]. The weight is packed beforehand, as happens once per version.
// Theirs computes in the same type throughout. Numbers are medians of the rounds (least .. largest); if the ranges
// touch, it is a tie.
#include <ATen/ops/from_blob.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>

#include "bench/models.h"
#include "bench/sides.h"
#include "collimate/model/model.h"
#include "collimate/tensor/autograd.h"
#include "collimate/tensor/ops/log_prob.h"

namespace collimate::bench {
namespace {

using tensor::Exec;

struct Work {
  int64_t rows, vocabulary, width;
  std::vector<int32_t> targets() const {
    std::vector<int32_t> ids;
    for (int64_t r = 0; r < rows; ++r) ids.push_back(static_cast<int32_t>(r * 7919 % vocabulary));
    return ids;
  }
};

// Values are the inputs, which both sides share.
struct Values {
  explicit Values(const Work& work)
      : hidden(noise(work.rows * work.width)),
        weight(noise(work.vocabulary * work.width, 2)),
        gradient(noise(work.rows, 3)),
        targets(work.targets()) {}
  std::vector<float> hidden, weight, gradient;
  std::vector<int32_t> targets;
};

class Ours {
 public:
  Ours(Exec exec, const Work& work, const Values& values, const std::string& type)
      : exec_(exec), work_(work), values_(values), dhidden_(values.hidden.size()), dweight_(values.weight.size()) {
    pack_linear(exec, values.weight.data(), work.vocabulary, work.width, tensor::compute_type_of(type), 1, panels_);
    for (std::vector<float>* row : {&log_prob_, &max_, &log_sum_}) row->resize(static_cast<size_t>(work.rows));
    const int64_t floats = work.rows * work.vocabulary;
    if (floats * static_cast<int64_t>(sizeof(float)) <= model::kMostRecordedLogitBytes)
      logits_.resize(static_cast<size_t>(floats));
  }

  bool keeps() const { return !logits_.empty(); }

  std::vector<double> pass(bool keep) {
    float* logits = keep ? logits_.data() : nullptr;
    tensor::LogProbHead head;
    head.hidden = values_.hidden.data(), head.hidden_stride = work_.width, head.rows = work_.rows;
    head.head = &panels_, head.targets = values_.targets.data();
    tensor::LogProbOutput out;
    out.log_prob = log_prob_.data(), out.max = max_.data(), out.log_sum = log_sum_.data(), out.logits = logits;
    const double forward = seconds_of([&] { log_softmax_gather(exec_, head, out); });
    tensor::LogProbGrad grad;
    grad.dlog_prob = values_.gradient.data(), grad.w = values_.weight.data(), grad.dw = dweight_.data();
    grad.dhidden = dhidden_.data(), grad.dhidden_stride = work_.width;
    tensor::LogProbForward kept;
    kept.max = max_.data(), kept.log_sum = log_sum_.data(), kept.logits = logits;
    return {forward, seconds_of([&] { log_softmax_gather_backward(exec_, head, grad, kept); })};
  }

 private:
  Exec exec_;
  Work work_;
  const Values& values_;
  tensor::LinearPanels panels_;
  std::vector<float> dhidden_, dweight_, log_prob_, max_, log_sum_, logits_;
};

class Theirs {
 public:
  Theirs(const Work& work, Values& values, at::ScalarType type)
      : targets_(of(values.targets.data(), {work.rows, 1}, at::kInt, at::kLong)),
        gradient_(of(values.gradient.data(), {work.rows, 1}, at::kFloat, type)) {
    leaves_ = {tensor::make_leaf(of(values.hidden.data(), {work.rows, work.width}, at::kFloat, type)),
               tensor::make_leaf(of(values.weight.data(), {work.vocabulary, work.width}, at::kFloat, type))};
  }

  std::vector<double> pass() const {
    at::Tensor log_probs;
    const double forward = seconds_of(
        [&] { log_probs = at::gather(at::log_softmax(at::linear(leaves_[0], leaves_[1]), -1), 1, targets_); });
    return {forward, seconds_of([&] { tensor::gradients_of(log_probs, gradient_, leaves_); })};
  }

 private:
  static at::Tensor of(void* data, at::IntArrayRef sizes, at::ScalarType from, at::ScalarType to) {
    return at::from_blob(data, sizes, from).to(to, /*non_blocking=*/false, /*copy=*/true);
  }

  at::Tensor targets_, gradient_;
  std::vector<at::Tensor> leaves_;
};

void compare(const Exec& exec, const std::string& model, const std::string& type, int64_t rows, int rounds) {
  const shape::ModelShape shape = model_shape(model);
  const Work work{rows, shape.vocabulary, shape.hidden};
  Values values(work);
  Ours ours(exec, work, values, type);
  const Theirs theirs(work, values, type == "float32" ? at::kFloat : at::kBFloat16);
  std::vector<Side> sides = {[&] { return seconds_of_parts([&] { return theirs.pass(); }); },
                             [&] { return seconds_of_parts([&] { return ours.pass(false); }); }};
  if (ours.keeps()) sides.emplace_back([&] { return seconds_of_parts([&] { return ours.pass(true); }); });
  const auto spreads = take_turns(rounds, sides);
  constexpr const char* kWays[] = {"", "again", "kept"};
  constexpr const char* kParts[] = {"forward", "backward", "both"};
  for (size_t side = 1; side < spreads.size(); ++side)
    for (size_t part = 0; part < 3; ++part) {
      const std::string name = fmt::format("log_prob {} {} M={} {} {}", model, type, rows, kWays[side], kParts[part]);
      print_sides(name, spreads[side][part], spreads[0][part]);
    }
}

void run(Words words) {
  const SaidSides said{words.among({"15m", "110m", "0.5b"}, {"15m", "110m"}), words.among({"float32", "bfloat16"}),
                       words.among({"512", "2048"})};
  compare_sides(words, said, &compare);
}

}  // namespace
}  // namespace collimate::bench

int main(int argc, char** argv) {
  return collimate::bench::run_bench("bench_log_prob", argc, argv, &collimate::bench::run);
}

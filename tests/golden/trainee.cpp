#include "tests/golden/trainee.h"

#include <cmath>
#include <filesystem>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "tests/support/model/edit_weights.h"

namespace collimate::golden {
namespace {

namespace fs = std::filesystem;

std::vector<float> to_vector(const at::Tensor& tensor) {
  if (!tensor.defined()) return {};
  const float* data = tensor.const_data_ptr<float>();
  return {data, data + tensor.numel()};
}

// The k-th entry of a parameter in the order of its file: GPT-2's files store linear weights as [in, out].
float in_file_order(const shape::ParamSpec& spec, std::span<const float> values, size_t k) {
  if (!spec.transposed_in_file) return values[k];
  const auto out = static_cast<size_t>(spec.sizes[0]);
  const auto in = static_cast<size_t>(spec.sizes[1]);
  return values[(k % out) * in + k / out];
}

// Key biases of GPT-2 have no gradient in exact arithmetic: what moves them is rounding.
// The first entries of c_attn.bias are of queries.
bool holds_key_bias(const std::string& name) { return name.ends_with("c_attn.bias"); }

}  // namespace

std::string ModelShelf::directory(const std::string& name) const {
  const std::string word = name.substr(0, name.find(' '));
  std::string relative = word;
  if (word == "260k") relative = "stories260k-llama/hf-llama";
  if (word == "chat3m") relative = "chat-3m-gptneo/hf-gpt2";
  const fs::path goldens(goldens_), models(models_);
  for (const fs::path& root : {goldens / "../data/models", goldens / "models", models})
    if (!root.empty() && fs::exists(root / relative / "config.json")) return (root / relative).string();
  std::string folders = "../data/models or models of the goldens";
  if (!models.empty()) folders += " or " + models_;
  throw base::InputError(base::expectation("golden", fmt::format("model \"{}\" as {} in {}", word, relative, folders),
                                           "none", "COLLIMATE_SHARED, the folder with data/models"));
}

int64_t ModelShelf::vocabulary(const std::string& name) const {
  return shape::read_model_shape(directory(name)).vocabulary;
}

std::shared_ptr<model::Weights> ModelShelf::open(const std::string& name, const std::string& head, bool trained,
                                                 const json& head_weight) const {
  const bool given = !head_weight.is_null();  // a head that its file lacks is one that a trained model may begin with
  auto weights = model::load_huggingface(directory(name), head, {.trained = trained || given}, {});
  if (!given) return weights;
  const int index = weights->index_of("score.weight");
  COLLIMATE_CHECK(index >= 0, "no score head");
  const auto values = head_weight.get<std::vector<float>>();
  if (values.size() != weights->values(index).size())
    throw base::InputError(base::expectation("golden", fmt::format("{} head weights", weights->values(index).size()),
                                             std::to_string(values.size())));
  std::copy(values.begin(), values.end(), model::testing::edit_of(*weights, index).begin());
  weights->commit();
  return weights;
}

Reference::Reference(const json& golden, const Options& options, const ModelShelf& shelf)
    : weights_(shelf.open(golden["hyper"].at("model"), "lm", false)),
      model_(weights_, {}),
      follows_(options.flag("sync_ref_model", false)),
      alpha_(options.number("ref_model_mixup_alpha", 0.6)),
      every_(static_cast<size_t>(options.number("ref_model_sync_steps", 512))) {
  const std::string which = options.text("ref", "the initial model");
  if (which.find("initial") == std::string::npos) throw UnknownKind("reference \"" + which + "\"", true);
}

void Reference::follow(size_t step, Trainee& trainee) {
  if (!follows_ || step % every_ != 0) return;
  for (size_t i = 0; i < weights_->params().size(); ++i) {
    const auto policy = trainee.weights().values(static_cast<int>(i));
    const tensor::HostEdit mine = model::testing::edit_of(*weights_, static_cast<int>(i));
    for (size_t k = 0; k < policy.size(); ++k)
      mine[k] = mine[k] * static_cast<float>(1 - alpha_) + static_cast<float>(alpha_) * policy[k];
  }
  weights_->commit();
}

Trainee::Trainee(std::shared_ptr<model::Weights> weights, const train::LearnerOptions& options)
    : weights_(std::move(weights)), model_(weights_, {}), learner_(model_, options, {}) {}

MicroReport Trainee::accumulate(const Batch& rows, const rlhf::Loss& loss, const batch::GlobalCounts& counts) {
  MicroReport report;
  rlhf::LossMetrics metrics;
  train::Objective objective = rlhf::objective_of(loss, &metrics);
  objective.loss = [&report, share = std::move(objective.loss)](const Batch& part, const batch::Quantities& quantities,
                                                                const auto& all, const auto& surveys) {
    report.log_probs = to_vector(quantities.log_probs);
    report.values = to_vector(quantities.values);
    return share(part, quantities, all, surveys);
  };
  rows.require(loss.columns, "golden");
  report.loss = learner_.accumulate(rows, objective, counts).loss;
  for (const auto& [name, sum] : metrics) report.metrics[name] = sum.second > 0 ? sum.first / sum.second : sum.first;
  return report;
}

double Trainee::gradient_norm(int parameter) {
  const tensor::HostRead gradient = weights_->gradient_of(parameter);
  double squares = 0;
  for (int64_t i = 0; i < base::at(weights_->params(), parameter).count(); ++i)
    squares += static_cast<double>(gradient[i]) * gradient[i];
  return std::sqrt(squares);
}

double Trainee::gradient_norm() {
  double squares = 0;
  for (size_t i = 0; i < weights_->params().size(); ++i) squares += std::pow(gradient_norm(static_cast<int>(i)), 2);
  return std::sqrt(squares);
}

void Trainee::compare_parameter(int index, const json& recorded, const std::string& what, Comparison& comparison) {
  const shape::ParamSpec& spec = base::at(weights_->params(), index);
  const auto values = weights_->values(index);
  double sum = 0, squares = 0;
  for (float x : values) {
    sum += x;
    squares += static_cast<double>(x) * x;
  }
  const double norm = recorded.at("l2");
  if (!holds_key_bias(spec.name)) {
    comparison.relative(what + " l2 of " + spec.name, std::sqrt(squares), norm, kParameterTolerance);
    // A sum over n entries is known to within norm · √n.
    comparison.scaled(what + " sum of " + spec.name, sum, recorded.at("sum"),
                      norm * std::sqrt(static_cast<double>(values.size())), kEntryTolerance);
  }
  // Entries are known to within what the tolerance of the norm lets the whole tensor move.
  for (size_t k = 0; k < recorded.at("first").size(); ++k)
    comparison.scaled(fmt::format("{} {}[{}]", what, spec.name, k), in_file_order(spec, values, k),
                      recorded["first"][k], norm, kEntryTolerance);
}

void Trainee::compare_parameters(const json& recorded, const std::string& what, Comparison& comparison) {
  for (const auto& [name, numbers] : recorded.items()) {
    const int index = weights_->index_of(name);
    if (index < 0)
      comparison.fail(what + " has " + name + ", our model has not");
    else
      compare_parameter(index, numbers, what, comparison);
  }
}

void Trainee::compare_gradients(const json& recorded, Comparison& comparison) {
  for (const auto& [name, norm] : recorded.items()) {
    const int index = weights_->index_of(name);
    if (index < 0)
      comparison.fail("gradient of " + name + ", which our model has not");
    else if (!holds_key_bias(name))
      comparison.relative("gradient of " + name, gradient_norm(index), norm, Tolerance{}.norm);
  }
}

}  // namespace collimate::golden

#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/model/model.h"
#include "collimate/rlhf/modules/objective.h"
#include "collimate/train/learner.h"
#include "tests/golden/compare.h"
#include "tests/golden/options.h"

namespace collimate::golden {

// A ModelShelf is where the models named by goldens lie: beside their folder, in it, or else in a folder of `models`.
class ModelShelf {
 public:
  explicit ModelShelf(std::string goldens, std::string models = "")
      : goldens_(std::move(goldens)), models_(std::move(models)) {}

  // Directory of the model that the first word of `name` stands for. InputError when it is not there.
  std::string directory(const std::string& name) const;
  int64_t vocabulary(const std::string& name) const;
  // Weights with a head "lm", "score" or "value", its vector from the golden where it has one.
  std::shared_ptr<model::Weights> open(const std::string& name, const std::string& head, bool trained,
                                       const json& head_weight = {}) const;

 private:
  std::string goldens_, models_;
};

// The frozen model of a golden. With TRL's sync_ref_model it follows the policy: every ref_model_sync_steps updates it
// becomes (1 - ref_model_mixup_alpha) · itself + ref_model_mixup_alpha · the policy. UnknownKind for another reference
// than the initial model.
class Trainee;
class Reference {
 public:
  Reference(const json& golden, const Options& options, const ModelShelf& shelf);
  model::Model& model() { return model_; }
  // This runs after the `step`-th update, counted from 1.
  void follow(size_t step, Trainee& trainee);

 private:
  std::shared_ptr<model::Weights> weights_;
  model::Model model_;
  bool follows_;
  double alpha_;
  size_t every_;
};

// One forward and backward of a micro-batch: its share of the loss, the loss's own metrics and the quantities.
struct MicroReport {
  double loss = 0;
  std::map<std::string, double> metrics;
  std::vector<float> log_probs;  // at the trainable tokens
  std::vector<float> values;
};

// A model in training: our weights, model, learner and AdamW.
class Trainee {
 public:
  Trainee(std::shared_ptr<model::Weights> weights, const train::LearnerOptions& options);

  model::Model& model() { return model_; }
  model::Weights& weights() { return *weights_; }
  const shape::ModelShape& shape() const { return weights_->shape(); }

  void zero_gradients() { weights_->zero_gradients(); }
  // Adds the gradient of the rows' share of the loss.
  MicroReport accumulate(const Batch& rows, const rlhf::Loss& loss, const batch::GlobalCounts& counts);
  double gradient_norm();
  double gradient_norm(int parameter);
  // Clips, steps and returns the norm before clipping.
  double step(double learning_rate) { return learner_.step(learning_rate); }

  // {name: {l2, sum, first}} against the present values.
  void compare_parameters(const json& recorded, const std::string& what, Comparison& comparison);
  // {name: norm} against the present gradients.
  void compare_gradients(const json& recorded, Comparison& comparison);

 private:
  void compare_parameter(int index, const json& recorded, const std::string& what, Comparison& comparison);

  std::shared_ptr<model::Weights> weights_;
  model::Model model_;
  train::Learner learner_;
};

}  // namespace collimate::golden

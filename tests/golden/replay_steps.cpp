// Goldens of shape steps[].micro[]: training runs of TRL's offline trainers, micro-batch by micro-batch.
#include <fmt/format.h>

#include "collimate/train/scoring.h"
#include "tests/golden/offline.h"
#include "tests/golden/place.h"
#include "tests/golden/replay.h"
#include "tests/golden/window.h"

namespace collimate::golden {
namespace {

class StepReplay {
 public:
  StepReplay(const json& golden, const ModelShelf& shelf)
      : golden_(golden),
        options_(golden.at("hyper")),
        task_(make_offline_task(trainer_kind(golden), options_, golden, shelf)),
        trainee_(shelf.open(golden["hyper"].at("model"), task_->head(), true,
                            golden.contains("head_weight") ? golden["head_weight"] : json()),
                 learner_options(options_)) {}

  Outcome run(const std::string& name) {
    trainee_.compare_parameters(object_or_empty(golden_, "params_before"), "before", comparison_);
    for (size_t s = 0; s < golden_["steps"].size(); ++s) step(s, golden_["steps"][s]);
    compare_final();
    return outcome_of(name, comparison_);
  }

 private:
  void step(size_t s, const json& recorded) {
    const Tolerance tolerance = tolerance_at(s);
    const json& micros = recorded.at("micro");
    trainee_.zero_gradients();
    for (size_t m = 0; m < micros.size(); ++m) {
      const OfflineMicro micro = task_->prepare(micros[m], micros, trainee_);
      const MicroReport report = trainee_.accumulate(micro.rows, task_->loss(), micro.counts);
      comparison_.loss(fmt::format("loss, step {}.{}", s + 1, m + 1), report.loss * micro.loss_scale,
                       micros[m].at("loss"), tolerance.loss);
      log_.add(report.metrics);
    }
    log_.compare(task_->metric_names(), object_or_empty(recorded, "metrics"), s, comparison_);
    log_.clear();
    const double norm = trainee_.step(recorded.at("lr"));
    task_->stepped(s + 1, trainee_);
    comparison_.relative(fmt::format("gradient norm, step {}", s + 1), norm, recorded.at("grad_norm"), tolerance.norm);
  }

  void compare_final() {
    const json& last = object_or_empty(golden_, "final");
    trainee_.compare_parameters(object_or_empty(last, "params"), "final", comparison_);
    if (!last.contains("logprobs_of_next_token_first_batch")) return;
    std::vector<TokenRow> rows = unpadded_rows(golden_["steps"][0]["micro"][0]["batch"]);
    for (TokenRow& row : rows) std::fill(row.trainable.begin() + 1, row.trainable.end(), 1);
    const Batch scored = train::with_log_probs(trainee_.model(), to_batch(rows), batch::kLogProbs, {});
    for (int64_t r = 0; r < scored.rows(); ++r) {
      const auto ours = scored.row(batch::kLogProbs, r);
      const json& theirs = last["logprobs_of_next_token_first_batch"].at(static_cast<size_t>(r));
      for (size_t t = 1; t < ours.size() && t <= theirs.size(); ++t)
        comparison_.loss(fmt::format("final log-prob [{}][{}]", r, t - 1), ours[t], theirs[t - 1],
                         tolerance_at(golden_["steps"].size()).token);
    }
  }

  const json& golden_;
  Options options_;
  std::unique_ptr<OfflineTask> task_;
  Trainee trainee_;
  MetricLog log_;
  Comparison comparison_;
};

}  // namespace

std::vector<Outcome> replay_steps(const std::string& name, const json& golden, const ModelShelf& shelf) {
  return {StepReplay(golden, shelf).run(name)};
}

}  // namespace collimate::golden

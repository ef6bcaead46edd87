#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "collimate/base/fields.h"
#include "collimate/base/metrics.h"
#include "collimate/base/stateful.h"
#include "collimate/flow/executor.h"
#include "collimate/recipe/best_metric.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/learning_watch.h"
#include "collimate/recipe/page.h"
#include "collimate/recipe/run_directory.h"
#include "collimate/recipe/run_totals.h"
#include "collimate/recipe/tensorboard.h"
#include "collimate/recipe/wandb.h"

namespace collimate::recipe {

// Writes what a run reports: a line of metrics.jsonl for each iteration (step 0 is the evaluation before the first),
// files of samples and of held-out rows, and the text that progress shows. The line of an iteration that is evaluated
// waits for its evaluation, and is part of the checkpoint meanwhile.
class Recorder : public base::Stateful {
 public:
  Recorder(const Config& config, const Plan& plan, const RunData& data, const RunDirectory& directory);

  // The recorder calls this with each line of metrics.jsonl after it was written.
  std::function<void(const base::MetricsRecord&)> on_record;

  void iteration(const flow::IterationResult& result);
  // Takes the result of one of the plan's evaluations, which come in their order. Returns true for the last one, with
  // which the line is written. Of rows of the training only samples are written.
  bool evaluation(const EvaluationPlan& plan, const flow::IterationResult& result);
  // Writes the line that still waits. Everything is on the disk afterwards.
  void finish();

  const nlohmann::ordered_json& first_evaluation() const { return first_evaluation_; }
  const nlohmann::ordered_json& last_evaluation() const { return last_evaluation_; }
  const base::MetricsRecord& last() const { return last_; }
  const RunTotals& totals() const { return totals_; }
  const LearningWatch& watch() const { return watch_; }
  // Returns which checkpoints stay, by run.keep_checkpoints and run.best_metric. The result asks this recorder.
  flow::Retention retention() const;
  double seconds() const;  // of the run, with those before it was resumed
  // Returns whether val/loss has not fallen for `run.patience` evaluations.
  bool out_of_patience() const;
  // Returns "reward 0.61 kl 0.02 grad 1.1" for the progress line.
  std::string details() const;

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;
  // Lists what a checkpoint has of the recorder.
  COLLIMATE_MEMBERS(waiting, last, first_evaluation, last_evaluation, best_loss, totals, watch, evaluations_since_best,
                    seconds)

 private:
  bool evaluates_after(int64_t iteration) const;
  void add_evaluation(const EvaluationPlan& plan, const flow::IterationResult& result, base::MetricsRecord& record);
  void add_measures(const EvaluationPlan& plan, const Batch& rows, base::MetricsRecord& record);
  void write_rows(const EvaluationPlan& plan, int64_t step, const Batch& rows) const;
  void watch_loss(const base::MetricsRecord& record);
  void add(const base::MetricsRecord& record);  // to the totals, the best metric and the watch
  void write(base::MetricsRecord record);
  void open_copies(const base::MetricsRecord& first);

  const Config& config_;
  const Plan& plan_;
  const RunData& data_;
  const RunDirectory& directory_;
  std::optional<base::MetricsWriter> writer_;     // none where the run has ended; load may open it anew
  std::optional<TensorboardWriter> tensorboard_;  // where log.tensorboard asks for it, from the first record on
  std::optional<WandbWriter> wandb_;              // where log.wandb asks for it, the same way
  double start_seconds_;
  double seconds_ = 0;  // of the run before it was resumed
  std::optional<base::MetricsRecord> waiting_;
  base::MetricsRecord last_;
  RunTotals totals_;
  LearningWatch watch_;
  BestMetric best_metric_;
  nlohmann::ordered_json values_ = nlohmann::ordered_json::object();  // of the evaluations since the last line
  nlohmann::ordered_json first_evaluation_;
  nlohmann::ordered_json last_evaluation_;
  double best_loss_ = 0;
  int64_t evaluations_since_best_ = -1;  // -1: none yet
};

}  // namespace collimate::recipe

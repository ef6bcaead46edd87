#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/batch/batch.h"
#include "collimate/comm/group.h"
#include "collimate/model/model.h"
#include "collimate/train/data_ranks.h"
#include "collimate/train/learner_options.h"
#include "collimate/train/mismatch.h"
#include "collimate/train/moving_average.h"
#include "collimate/train/optimizer.h"
#include "collimate/train/router_loss.h"
#include "collimate/train/stage.h"

namespace collimate::train {

struct UpdateReport {
  double loss = 0;
  double grad_norm = 0;  // total L2 norm before clipping
  double learning_rate = 0;
  int64_t rows = 0;
  int64_t tokens = 0;  // packed, prompts included
  int64_t trainable_tokens = 0;
  int64_t micro_batches = 0;
  RouterReport routers;  // of a mixture
  Mismatch mismatch;     // of the log-probs that this update differentiated
};

// Forward, loss, backward, clip, step over one Model. Blocking; not thread-safe. Its state is the weights, the
// optimizer's and the average, of which each rank saves its part; any number of ranks loads them.
class Learner : public base::Stateful {
 public:
  // `ranks` call update together.
  Learner(model::Model& model, LearnerOptions options, tensor::Exec exec, const TrainingRanks& ranks = {});

  // One optimizer step over all rows (columns ids, trainable and what the loss reads), in micro-batches of a token
  // budget; rows are summed in the order of their uids. GuardError, with nothing changed, when the loss or the gradient
  // is not finite.
  UpdateReport update(const Batch& rows, const Objective& objective);
  // Does the same with rows of several objectives, whose losses add up: the first part is what the report counts.
  UpdateReport update(std::vector<UpdatePart> parts);

  // Leaves out the step: gradients are left in the weights. For tests and golden replays.
  UpdateReport accumulate(const Batch& rows, const Objective& objective, const batch::GlobalCounts& counts);
  // Compares rows that later updates train with what generation recorded; changes nothing.
  Mismatch check(const Batch& rows) {
    return train::check(model_, rows,
                        {.temperature = options_.temperature,
                         .micro_batch_tokens = options_.micro_batch_tokens,
                         .micro_batch_rows = options_.micro_batch_rows,
                         .progress = options_.progress,
                         .routes = options_.routes,
                         .context = context_});
  }
  // Clips what accumulate() left and steps with `learning_rate`; returns the norm before clipping.
  double step(double learning_rate);

  // All that training keeps beside the weights leaves the device for the file, and comes back with the same bits: the
  // optimizer's moments and the average. Gradients and what passes keep are given back. Between updates.
  void offload(tensor::AwayFile& file);
  void restore(tensor::AwayFile& file);

  // The average of the weights; null without LearnerOptions::ema.
  MovingAverage* average() { return average_ ? &*average_ : nullptr; }

  int64_t steps() const { return optimizer_.steps(); }
  int64_t optimizer_bytes() const { return optimizer_.bytes(); }
  const LearnerOptions& options() const { return options_; }

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  // Rows of the micro-batches that have something to train; behind them empty ones, where ranks whose passes meet have
  // more: they compute no loss, hold what the others' passes read and complete gradients to which they add nothing.
  std::vector<Batch> micro_batches(const Batch& rows, const batch::QuantityNeeds& needs) const;
  // Returns the surveys of the micro-batches, in their order.
  std::vector<batch::Surveys> take_surveys(std::span<const Batch> parts, const Objective& objective);
  // Sums the load of all micro-batches ahead of their backwards, where their losses read it.
  void survey_routers(std::span<const Batch> parts, RouterLoss& routers);
  UpdateReport accumulate(std::span<const UpdatePart> parts);
  double train_rows(std::span<const UpdatePart> parts, RouterLoss& routers, UpdateReport& report);
  // Has all micro-batches pass the stage, and gives each to `forwarded(number, micro-batch)`.
  void run_forwards(std::span<const Batch> parts, const Stage::Forwarded& forwarded);
  void tell(const MicroStep& micro, UpdateReport& report) const;
  void join_stages(UpdateReport& report) const;
  // The key of the next update's draws, for adapters that drop some of their inputs; none without dropout.
  std::optional<uint64_t> dropout_key() const;
  const model::StageRanks& stages() const { return model_.weights().stages(); }
  void clip_and_step(double learning_rate, double norm);

  model::Model& model_;
  LearnerOptions options_;
  tensor::Exec exec_;
  model::ContextRanks context_;
  DataRanks ranks_;
  AdamW optimizer_;
  std::optional<MovingAverage> average_;
};

// Counts of all rows, of which pairs stand together, the chosen row first.
batch::GlobalCounts count_rows(const Batch& rows);

}  // namespace collimate::train

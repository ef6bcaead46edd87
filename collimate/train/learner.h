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
  int64_t tokens = 0;  // of the rows that were trained, each with its own prompt
  int64_t trainable_tokens = 0;
  int64_t micro_batches = 0;
  RouterReport routers;  // of a mixture
  Mismatch mismatch;     // between generation and the log-probs that this update differentiated
};

// A Learner trains one Model: it runs forward, loss and backward, clips the gradient and makes the step. Calls block;
// it is not thread-safe. Its state is the weights, the optimizer's moments and the average; each rank saves its part of
// them, and any number of ranks can load them.
class Learner : public base::Stateful {
 public:
  // All of `ranks` call update() together.
  Learner(model::Model& model, LearnerOptions options, tensor::Exec exec, const TrainingRanks& ranks = {});

  // Makes one optimizer step over all rows (columns ids, trainable and what the loss reads), in micro-batches of a
  // token budget. Rows are summed in the order of row_order(). Throws GuardError, with weights and optimizer unchanged,
  // when the loss or the gradient is not finite.
  UpdateReport update(const Batch& rows, const Objective& objective);
  // Does the same with rows of several objectives, whose losses add up. The report's rows and trainable_tokens are
  // those of the first part alone.
  UpdateReport update(std::vector<UpdatePart> parts);

  // Adds the gradient of `rows`, in their order and for these `counts`, to the weights' and makes no step. For tests
  // and golden replays.
  UpdateReport accumulate(const Batch& rows, const Objective& objective, const batch::GlobalCounts& counts);
  // Compares rows that later updates will train on with what generation recorded; changes nothing.
  Mismatch check(const Batch& rows) {
    return train::check(model_, rows,
                        {.temperature = options_.temperature,
                         .micro_batch_tokens = options_.micro_batch_tokens,
                         .micro_batch_rows = options_.micro_batch_rows,
                         .progress = options_.progress,
                         .routes = options_.routes,
                         .context = context_});
  }
  // Clips the gradient that accumulate() left and makes a step with `learning_rate`; returns the norm before clipping.
  double step(double learning_rate);

  // offload() moves what training keeps beside the weights, the optimizer's moments and the average, from the device to
  // the file; restore() brings it back with the same bits. Memory of gradients and of passes is given back. To be
  // called between updates.
  void offload(tensor::AwayFile& file);
  void restore(tensor::AwayFile& file);

  // Returns the average of the weights; null without LearnerOptions::ema.
  MovingAverage* average() { return average_ ? &*average_ : nullptr; }

  int64_t steps() const { return optimizer_.steps(); }
  const LearnerOptions& options() const { return options_; }

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  // Returns the rows of the micro-batches that have something to train. Empty ones follow where other ranks, whose
  // passes meet this rank's, have more: they compute no loss, hold the weights that the others' passes read, and
  // complete gradients to which they add nothing.
  std::vector<Batch> micro_batches(const Batch& rows, const batch::QuantityNeeds& needs) const;
  // Returns the surveys of the micro-batches, in their order.
  std::vector<batch::Surveys> take_surveys(std::span<const Batch> parts, const Objective& objective);
  // Sums the load of all micro-batches ahead of their backwards, where their losses read it.
  void survey_routers(std::span<const Batch> parts, RouterLoss& routers);
  UpdateReport accumulate(std::span<const UpdatePart> parts);
  double train_rows(std::span<const UpdatePart> parts, RouterLoss& routers, UpdateReport& report);
  // Takes all micro-batches forward through the stage's runs and calls `forwarded(number, micro-batch)` behind each.
  void run_forwards(std::span<const Batch> parts, const Stage::Forwarded& forwarded);
  RankRuns rank_runs() const;
  void tell(const MicroStep& micro, UpdateReport& report) const;
  void join_stages(UpdateReport& report) const;
  // Returns the key of the next update's draws for adapters that drop some of their inputs; none without dropout.
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

// Returns the counts of these rows alone. Preference pairs stand together, the chosen row first.
batch::GlobalCounts count_rows(const Batch& rows);

}  // namespace collimate::train

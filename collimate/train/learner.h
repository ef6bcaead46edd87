#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/batch/batch.h"
#include "collimate/batch/quantities.h"
#include "collimate/comm/group.h"
#include "collimate/model/model.h"
#include "collimate/train/data_ranks.h"
#include "collimate/train/lr_schedule.h"
#include "collimate/train/mismatch.h"
#include "collimate/train/optimizer.h"
#include "collimate/train/router_loss.h"

namespace collimate::train {

struct LearnerOptions {
  LrSchedule schedule;
  AdamOptions adam;
  double max_grad_norm = 1.0;  // 0: no clipping
  int64_t micro_batch_tokens = 2048;
  int64_t micro_batch_rows = 0;  // at most so many rows, too; 0: any number
  int zero = 0;                  // of several ranks, the stage of ZeRO: see DataRanks
  model::Recompute recompute = model::Recompute::kNone;
  float temperature = 1.0F;        // of the log-probs: the sampling temperature
  RouterLossOptions routers = {};  // of a mixture, as the next
  RecordedRoutes routes = RecordedRoutes::kIgnored;
  double deadline_seconds = 600.0;      // of every wait for other ranks
  std::function<void()> progress = {};  // called after every micro-batch, of check() too
};

// One update minimises the objective: the share of the loss that the rows of one micro-batch have (a scalar tensor
// connected to the quantities; shares add up to the loss of the update).
struct Objective {
  using Share = at::Tensor(const Batch& rows, const batch::Quantities&, const batch::GlobalCounts&,
                           const batch::Surveys&);
  batch::QuantityNeeds needs;
  std::function<Share> loss;
  // With `surveys` above 0 a first pass over all micro-batches asks each for as many lists of numbers, any number in
  // each, and the share of every micro-batch then sees all of them.
  size_t surveys = 0;
  std::function<std::vector<at::Tensor>(const Batch& rows, const batch::Quantities&)> survey = {};
};

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

// Forward, loss, backward, clip, step over one Model. Blocking; not thread-safe. Its state is the weights and the
// optimizer's, of which each rank saves its part; any number of ranks loads them.
class Learner : public base::Stateful {
 public:
  // `ranks` call update together.
  Learner(model::Model& model, LearnerOptions options, tensor::Exec exec, const TrainingRanks& ranks = {});

  // One optimizer step over all rows (columns ids, trainable and what the loss reads), in micro-batches of a token
  // budget; rows are summed in the order of their uids. GuardError, with nothing changed, when the loss or the gradient
  // is not finite.
  UpdateReport update(const Batch& rows, const Objective& objective);

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

  int64_t steps() const { return optimizer_.steps(); }
  int64_t optimizer_bytes() const { return optimizer_.bytes(); }
  const LearnerOptions& options() const { return options_; }

  void save(base::StateWriter& out) const override;
  void load(base::StateReader& in) override;

 private:
  // Rows of the micro-batches that have something to train.
  std::vector<Batch> micro_batches(const Batch& rows, const batch::QuantityNeeds& needs) const;
  // Returns the surveys of the micro-batches, in their order.
  std::vector<batch::Surveys> take_surveys(std::span<const Batch> parts, const Objective& objective);
  // Sums the load of all micro-batches ahead of their backwards, where their losses read it.
  void survey_routers(std::span<const Batch> parts, RouterLoss& routers);
  double train_rows(const Batch& rows, const Objective& objective, const batch::GlobalCounts& counts,
                    RouterLoss& routers, UpdateReport& report);
  void clip_and_step(double learning_rate, double norm);

  model::Model& model_;
  LearnerOptions options_;
  tensor::Exec exec_;
  model::ContextRanks context_;
  DataRanks ranks_;
  AdamW optimizer_;
};

// Counts of all rows, of which pairs stand together, the chosen row first.
batch::GlobalCounts count_rows(const Batch& rows);

}  // namespace collimate::train

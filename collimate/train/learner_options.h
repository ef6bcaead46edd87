#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "collimate/batch/batch.h"
#include "collimate/batch/quantities.h"
#include "collimate/model/model.h"
#include "collimate/train/lr_schedule.h"
#include "collimate/train/micro_batch.h"
#include "collimate/train/optimizer.h"
#include "collimate/train/router_loss.h"

namespace collimate::train {

struct LearnerOptions {
  LrSchedule schedule;
  AdamOptions adam;
  double max_grad_norm = 1.0;  // 0: no clipping
  double ema = 0.0;            // decay of a MovingAverage; 0: none
  int64_t micro_batch_tokens = 2048;
  int64_t micro_batch_rows = 0;  // a micro-batch has at most so many rows, too; 0: any number
  int zero = 0;                  // of several ranks, the stage of ZeRO: see DataRanks
  model::Recompute recompute = model::Recompute::kNone;
  std::shared_ptr<tensor::AwayFile> away = nullptr;  // where the optimizer's moments stay between steps (AdamW), if set
  float temperature = 1.0F;                          // of the log-probs: the sampling temperature
  RouterLossOptions routers = {};                    // of a mixture, as is `routes`
  RecordedRoutes routes = RecordedRoutes::kIgnored;
  uint64_t seed = 0;                    // of the adapters' dropout
  double deadline_seconds = 600.0;      // of every wait for other ranks
  std::function<void()> progress = {};  // called after every micro-batch, of check() too
};

// An update minimises an objective. `loss` returns the share of the loss that the rows of one micro-batch have, a
// scalar tensor connected to the quantities; the shares add up to the loss of the update.
struct Objective {
  using Share = at::Tensor(const Batch& rows, const batch::Quantities&, const batch::GlobalCounts&,
                           const batch::Surveys&);
  batch::QuantityNeeds needs;
  std::function<Share> loss;
  // With `surveys` above 0 a first pass calls `survey` for each micro-batch, which returns that many lists of numbers,
  // of any length; `loss` then sees the lists of all micro-batches.
  size_t surveys = 0;
  std::function<std::vector<at::Tensor>(const Batch& rows, const batch::Quantities&)> survey = {};
  std::optional<float> temperature = {};  // of its log-probs, where that is not the learner's
};

// Holds rows of one update with an objective of their own; losses and gradients of all parts add up. `counts` are those
// of this part's rows alone, over all ranks.
struct UpdatePart {
  Batch rows;
  const Objective* objective = nullptr;
  batch::GlobalCounts counts = {};
};

}  // namespace collimate::train

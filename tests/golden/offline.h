#pragma once

#include <map>
#include <memory>
#include <string>

#include "tests/golden/options.h"
#include "tests/golden/rows.h"
#include "tests/golden/trainee.h"

namespace collimate::golden {

// A recorded micro-batch as our learner takes it. TRL's loss of the micro-batch is our share times `loss_scale`.
struct OfflineMicro {
  Batch rows;
  batch::GlobalCounts counts;
  double loss_scale = 1.0;
};

// The offline trainers differ in this: head, loss, how a recorded micro-batch becomes rows.
class OfflineTask {
 public:
  virtual ~OfflineTask() = default;
  virtual std::string head() const { return "lm"; }
  virtual OfflineMicro prepare(const json& micro, const json& micros, Trainee& trainee) = 0;
  // TRL's name of a metric -> ours.
  virtual std::map<std::string, std::string> metric_names() const { return {}; }
  // This runs after the `step`-th update, counted from 1.
  virtual void stepped(size_t /*step*/, Trainee& /*trainee*/) {}
  const rlhf::Loss& loss() const { return loss_; }

 protected:
  rlhf::Loss loss_;
};

// `kind`: as trainer_kind says, of a trainer without rollouts.
std::unique_ptr<OfflineTask> make_offline_task(const std::string& kind, const Options& options, const json& golden,
                                               const ModelShelf& shelf);
std::unique_ptr<OfflineTask> make_kto_task(const Options& options, const json& golden, const ModelShelf& shelf);
std::unique_ptr<OfflineTask> make_distillation_task(const Options& options);
// Pairs without a reference: "orpo" or "cpo".
std::unique_ptr<OfflineTask> make_reference_free_task(const std::string& kind, const Options& options);

// Rows of which every micro-batch has the same weight in the update: TRL's mean over micro-batches of a mean.
OfflineMicro mean_of_micros(Batch rows, size_t micros);

}  // namespace collimate::golden

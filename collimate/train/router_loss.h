#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/model/model.h"
#include "collimate/shape/block.h"

namespace collimate::train {

// Weights of a mixture's losses beside the objective.
struct RouterLossOptions {
  // E Σ f_e p_e: f_e the rows that an expert got a token, p_e the mean of its scores, over all routers (Fedus et al.
  // 2021, as transformers counts it).
  double balance = 0;
  // The mean squared log Σ exp of logits (Zoph et al. 2022).
  double z = 0;
};

// A weight of the balance that is not asked for is the model's own. InputError naming train's option for losses that
// the routers of a language model cannot have: there are none, or their scores are sigmoids.
RouterLossOptions router_losses(const shape::ModelShape& shape, std::optional<double> balance, double z);

struct RouterReport {
  int64_t tokens = 0;  // that routers saw, each in every row that it stands for; 0: the model is no mixture
  double balance = 0;  // 1 times the experts a token where all get as many
  double z = 0;
  double busiest_share = 0;  // of a router's rows, the expert with the most of any
  double spread = 0;         // of rows an expert: standard deviation by mean, the mean over routers
};

// The load of a mixture's routers over an update, and its losses: of all micro-batches and ranks, so that neither
// changes them. They need the whole load before the first backward; a token counts once for each row that it stands
// for.
class RouterLoss {
 public:
  // `stages`: of which each has some of the routers; with several of them close() comes ahead of the first apply().
  RouterLoss(const shape::ModelShape& shape, const RouterLossOptions& options, comm::Group* group, double deadline,
             const model::StageRanks& stages);

  bool has_loss() const { return experts_ != nullptr && (options_.balance != 0 || options_.z != 0); }
  // Adds a forward's load, until all is known.
  void add(const model::ForwardRecord& record);
  // Does so where that is still to be done, and has the forward's backward add the losses.
  void apply(model::ForwardRecord& record);
  // All ranks have added theirs; nothing when called again.
  void close();

  // This holds once all is known.
  RouterReport report() const;
  double loss() const;

 private:
  double sum(int64_t router, int64_t entry) const;  // of a router's load
  double sum(int64_t entry) const;                  // over routers
  double routed() const;                            // tokens, over routers
  double balance() const;
  double z() const;

  const shape::Experts* experts_;  // null: the model is no mixture
  RouterLossOptions options_;
  comm::Group* group_;
  double deadline_;
  const model::StageRanks& stages_;
  bool closed_ = false;
  std::vector<float> load_;  // [routers, entries] as of Model::router_load
  int64_t routers_ = 0;
};

}  // namespace collimate::train

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "collimate/comm/group.h"
#include "collimate/model/model.h"
#include "collimate/shape/block.h"

namespace collimate::train {

// Holds the weights of a mixture's losses beside the objective.
struct RouterLossOptions {
  // Weighs E Σ f_e p_e, where f_e is the rows per token that expert e got and p_e the mean of its scores, over all
  // routers (Fedus et al. 2021, as transformers counts it).
  double balance = 0;
  // Weighs the mean squared log Σ exp of logits (Zoph et al. 2022).
  double z = 0;
};

// Returns the weights of the losses; without `balance` that weight is the model's own. Throws InputError naming train's
// option for losses that a language model cannot have, as it has no routers or their scores are sigmoids.
RouterLossOptions router_losses(const shape::ModelShape& shape, std::optional<double> balance, double z);

struct RouterReport {
  int64_t tokens = 0;  // that routers saw, one for each row that a token stands for; 0: the model is no mixture
  double balance = 0;  // the experts per token, where all experts get equally many rows
  double z = 0;
  double busiest_share = 0;  // largest share of a router's rows that one expert got, over all routers
  double spread = 0;         // standard deviation of the rows per expert over their mean, averaged over routers
};

// Sums the load of a mixture's routers over all micro-batches and ranks of an update, and computes its losses from that
// sum, so that the division into micro-batches and ranks does not change them. The losses need the whole load before
// the first backward. A token counts once for each row that it stands for.
class RouterLoss {
 public:
  // Each of `stages` has some of the routers; with several stages close() must come ahead of the first apply().
  RouterLoss(const shape::ModelShape& shape, const RouterLossOptions& options, comm::Group* group, double deadline,
             const model::StageRanks& stages);

  bool has_loss() const { return experts_ != nullptr && (options_.balance != 0 || options_.z != 0); }
  // Adds a forward's load; does nothing behind close().
  void add(const model::ForwardRecord& record);
  // Adds a forward's load as add(), and has the forward's backward add the losses.
  void apply(model::ForwardRecord& record);
  // Sums the load over all ranks, which have added theirs; does nothing when called again.
  void close();

  // These hold behind close().
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
  std::vector<float> load_;  // [routers, entries] as in Model::router_load
  int64_t routers_ = 0;
};

}  // namespace collimate::train

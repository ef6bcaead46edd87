#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collimate/model/model.h"
#include "collimate/model/stage_ranks.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/experts.h"

namespace collimate::model {

// Keeps the choices of a mixture's routers for the T tokens of one pass, or compares them with recorded choices, as
// TokenBatch says. The object must not move while a tape reads it.
class RouterChoices {
 public:
  // Throws InputError when TokenBatch::experts cannot be of this model.
  RouterChoices(const tensor::Exec& exec, const shape::ModelShape& shape, const TokenBatch& tokens, bool keep);
  RouterChoices(const RouterChoices&) = delete;
  RouterChoices& operator=(const RouterChoices&) = delete;

  // Returns where a router's choices [T, K] are to be kept; null: nowhere.
  int32_t* kept(int router) const;
  // Compares what a router chose with what was recorded, and replays the latter if TokenBatch::replayed.
  void compare(const shape::Experts& how, const tensor::Routed& routed, int router);
  // Makes the choices that each stage kept of its own routers known to all stages.
  void join(const StageRanks& stages);
  // Returns the choices that were kept.
  RoutedExperts chosen() const;
  // Adds what was compared since the last call to TokenBatch::agreement.
  void tell();

 private:
  void read_recorded(const TokenBatch& tokens, const shape::Experts& how);

  tensor::Exec exec_;
  int64_t tokens_, routers_, per_token_;
  tensor::Buffer kept_;            // [routers, T, K]
  std::vector<int32_t> recorded_;  // [routers, T, K] as in tensor::RecordedChoices, or empty
  tensor::OnDevice<int32_t> recorded_on_device_;
  tensor::Buffer differ_;             // [T]
  int64_t known_ = 0, compared_ = 0;  // tokens with recorded choices; their comparisons since the last tell()
  bool replayed_;
  RouterAgreement* agreement_;
};

}  // namespace collimate::model

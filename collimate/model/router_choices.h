#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "collimate/model/model.h"
#include "collimate/model/stage_ranks.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/experts.h"

namespace collimate::model {

// The choices of a mixture's routers for the T tokens of one pass: kept, or compared with those that were recorded, as
// TokenBatch says. Stays where it is while a tape reads it.
class RouterChoices {
 public:
  // InputError where TokenBatch::experts cannot be of this model.
  RouterChoices(const tensor::Exec& exec, const shape::ModelShape& shape, const TokenBatch& tokens, bool keep);
  RouterChoices(const RouterChoices&) = delete;
  RouterChoices& operator=(const RouterChoices&) = delete;

  // Where a router's choices [T, K] are to be kept; null: nowhere.
  int32_t* kept(int router) const;
  // Compares what a router gave, and replays what was recorded.
  void compare(const shape::Experts& how, const tensor::Routed& routed, int router);
  // Each stage has kept what its own routers chose: all of it becomes known to all.
  void join(const StageRanks& stages);
  // Gives what was kept.
  RoutedExperts chosen() const;
  // Adds what was compared since the last call to TokenBatch::agreement.
  void tell();

 private:
  void read_recorded(const TokenBatch& tokens, const shape::Experts& how);

  tensor::Exec exec_;
  int64_t tokens_, routers_, per_token_;
  tensor::Buffer kept_;            // [routers, T, K]
  std::vector<int32_t> recorded_;  // [routers, T, K] as of tensor::RecordedChoices, or empty
  tensor::OnDevice<int32_t> recorded_on_device_;
  tensor::Buffer differ_;             // [T]
  int64_t known_ = 0, compared_ = 0;  // tokens that were recorded; those times routers that compared
  bool replayed_;
  RouterAgreement* agreement_;
};

}  // namespace collimate::model

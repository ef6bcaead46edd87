#pragma once

#include <memory>
#include <span>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/cli/rank_models.h"
#include "collimate/generate/prompt_score.h"
#include "collimate/generate/service.h"

namespace collimate::cli {

// ServiceRanks are the services of a team, one for each rank over its part of the model. All ranks of a replica do the
// same steps. Requests go to the replica with the fewest in flight. Only one thread may use it at a time.
class ServiceRanks final : public generate::Completer {
 public:
  // Makes a service on each rank from `options`, completed by RankModels::service. Refers to the models.
  ServiceRanks(RankModels& models, const generate::ServiceOptions& options);

  void submit(const Batch& requests) override;
  // Runs a step on all replicas and returns when the last of them has ended. In a team of several ranks a failure on
  // any rank is final.
  bool step() override;
  std::span<const generate::Emission> take() override;
  void cancel(std::span<const int64_t> uids) override;
  generate::ServiceStats stats() const override;

 private:
  int least_busy() const;
  generate::Service& of(const RankPlace& place) { return *base::at(services_, place.rank); }

  RankTeam& team_;
  std::vector<std::unique_ptr<generate::Service>> services_;  // by rank
  std::vector<generate::Emission> taken_;                     // by the last take(), if there are several replicas
};

// A PromptScoreRanks scores a prompt on the first replica of a team, as generate::PromptScore does on one rank.
class PromptScoreRanks {
 public:
  PromptScoreRanks(RankModels& models, std::span<const int32_t> ids, const generate::SamplingParams& sampling);

  bool advance(int64_t tokens);
  const generate::PromptLogProbs& log_probs() const { return base::at(scores_, ending_)->log_probs(); }

 private:
  RankModels& models_;
  std::vector<std::unique_ptr<generate::PromptScore>> scores_;  // by rank; null for ranks of other replicas
  int ending_ = 0;                                              // the rank that has the log-probs
};

}  // namespace collimate::cli

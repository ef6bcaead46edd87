#include "collimate/cli/service_ranks.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"

namespace collimate::cli {

ServiceRanks::ServiceRanks(RankModels& models, const generate::ServiceOptions& options)
    : team_(models.team()), services_(static_cast<size_t>(team_.size())) {
  team_.run([&](const RankPlace& place) {
    base::at(services_, place.rank) =
        std::make_unique<generate::Service>(models.of(place).open.model, models.service(place, options));
  });
}

int ServiceRanks::least_busy() const {
  std::vector<int64_t> running(static_cast<size_t>(team_.replicas()));
  for (int rank = 0; rank < team_.size(); ++rank)
    if (const RankPlace& place = team_.place(rank); place.leads)
      base::at(running, place.replica) = base::at(services_, rank)->running();
  return static_cast<int>(std::ranges::min_element(running) - running.begin());
}

// All ranks of the replica find the same InputError for a wrong request. It is not a failure of the team, so it is
// thrown only after all have returned.
void ServiceRanks::submit(const Batch& requests) {
  const int replica = least_busy();
  std::vector<std::exception_ptr> refused(services_.size());
  team_.run([&](const RankPlace& place) {
    if (place.replica != replica) return;
    try {
      of(place).submit(requests);
    } catch (const base::InputError&) {
      base::at(refused, place.rank) = std::current_exception();
    }
  });
  for (const std::exception_ptr& error : refused)
    if (error) std::rethrow_exception(error);
}

bool ServiceRanks::step() {
  std::vector<char> worked(services_.size());
  team_.run([&](const RankPlace& place) { base::at(worked, place.rank) = of(place).step() ? 1 : 0; });
  return std::ranges::find(worked, 1) != worked.end();
}

std::span<const generate::Emission> ServiceRanks::take() {
  std::span<const generate::Emission> first;
  taken_.clear();
  for (int rank = 0; rank < team_.size(); ++rank) {
    const RankPlace& place = team_.place(rank);
    const auto taken = of(place).take();
    if (!place.leads) continue;
    first = taken;
    if (team_.replicas() > 1) taken_.insert(taken_.end(), taken.begin(), taken.end());
  }
  return team_.replicas() > 1 ? std::span<const generate::Emission>(taken_) : first;
}

void ServiceRanks::cancel(std::span<const int64_t> uids) {
  team_.run([&](const RankPlace& place) { of(place).cancel(uids); });
}

generate::ServiceStats ServiceRanks::stats() const {
  std::vector<generate::ServiceStats> parts;
  int64_t cache_bytes = 0;
  for (int rank = 0; rank < team_.size(); ++rank) {
    const generate::ServiceStats stats = base::at(services_, rank)->stats();
    cache_bytes += stats.cache_bytes;
    if (team_.place(rank).leads) parts.push_back(stats);
  }
  generate::ServiceStats total = generate::total_of(parts);
  total.cache_bytes = cache_bytes;
  return total;
}

PromptScoreRanks::PromptScoreRanks(RankModels& models, std::span<const int32_t> ids,
                                   const generate::SamplingParams& sampling)
    : models_(models), scores_(static_cast<size_t>(models.team().size())) {
  for (int rank = 0; rank < models.team().size(); ++rank) {
    const RankPlace& place = models.team().place(rank);
    if (place.replica != 0) continue;
    if (place.ends) ending_ = rank;
    base::at(scores_, rank) = std::make_unique<generate::PromptScore>(models.of(place).open.model, ids,
                                                                      sampling.temperature, sampling.top_log_probs);
  }
}

// Ranks of other replicas that share experts with the first one take part in its forward, without tokens of their own.
bool PromptScoreRanks::advance(int64_t tokens) {
  bool done = false;
  models_.team().run([&](const RankPlace& place) {
    const auto& score = base::at(scores_, place.rank);
    const bool over = score != nullptr && score->advance(tokens);
    if (place.rank == ending_) done = over;
    while (models_.of(place).open.model.end_step(false)) {
    }
  });
  return done;
}

}  // namespace collimate::cli

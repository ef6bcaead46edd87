#include "collimate/cli/rank_team.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/flow/context.h"
#include "collimate/host/cpu.h"
#include "collimate/rlhf/modules/decoder.h"
#include "collimate/tensor/aten_threads.h"

namespace collimate::cli {
namespace {

constexpr const char* kModel = "model";
constexpr const char* kFunction = "generate";

// Returns the number of a new team, which its groups' names begin with: names tell the groups of this process apart.
int64_t next_team() {
  static std::atomic<int64_t> teams = 0;
  return teams++;
}

void share_first(comm::Group* group, double& value, double deadline_seconds) {
  if (group != nullptr) group->broadcast(std::as_writable_bytes(std::span(&value, 1)), 0).wait(deadline_seconds);
}

}  // namespace

std::function<double()> RankPlace::clock() const {
  comm::Group *stages = ranks.stages.group, *tensor = ranks.tensor.group;
  if (stages == nullptr && tensor == nullptr) return {};
  return [stages, tensor, seconds = ranks.tensor.deadline_seconds] {
    double now = base::now_seconds();
    share_first(stages, now, seconds);
    share_first(tensor, now, seconds);
    return now;
  };
}

RankTeam::RankTeam(const graph::Layout& layout) : layout_(layout) {
  const comm::Mesh mesh({{"dp", layout.dp}, {"cp", 1}, {"pp", layout.pp}, {"tp", layout.tp}});
  places_.resize(static_cast<size_t>(mesh.size()));
  groups_.resize(places_.size());
  for (int rank = 0; rank < size(); ++rank) places_[rank].rank = rank;
  try {
    for (int rank = 1; rank < size(); ++rank) threads_.emplace_back([this, rank] { live(rank); });
    join_groups(mesh);
  } catch (...) {
    end();
    throw;
  }
}

RankTeam::~RankTeam() { end(); }

void RankTeam::end() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void RankTeam::join_groups(const comm::Mesh& mesh) {
  const std::string team = fmt::format("team {}", next_team());
  run([&](const RankPlace& place) {
    const auto join = [&](const std::vector<int>& ranks, int at) {
      return comm::back_end("threads").join({.name = fmt::format("{}/{}", team, fmt::join(ranks, "-")),
                                             .rank = at,
                                             .size = static_cast<int>(ranks.size())});
    };
    base::at(groups_, place.rank) = flow::LineGroups({{kFunction, mesh}}, {{kFunction, layout_.ep}}, place.rank, join);
    base::at(places_, place.rank) = place_of(place.rank, mesh);
  });
}

const RankPlace& RankTeam::place(int rank) const { return base::at(places_, rank); }

RankPlace RankTeam::place_of(int rank, const comm::Mesh& mesh) const {
  flow::Context context{.model = kModel, .calls = {kFunction}, .device = rank};
  context.placement.layouts[kModel][kFunction] = layout_;
  context.meshes[kFunction] = mesh;
  context.lines = base::at(groups_, rank).lines();
  RankPlace place{.rank = rank,
                  .replica = mesh.coordinate(rank, "dp"),
                  .ranks = rlhf::model_ranks(context),
                  .threads = std::max(1, host::thread_count() / size())};
  const bool first = place.ranks.tensor.place.rank == 0;
  place.leads = first && place.ranks.stages.place.is_first();
  place.ends = first && place.ranks.stages.place.is_last();
  return place;
}

void RankTeam::run(const std::function<void(const RankPlace&)>& work) {
  if (size() == 1) return work(places_.front());  // no other rank waits, so a failure does not end the team
  {
    const std::lock_guard lock(mutex_);
    if (failure_) throw base::RunError(cause_);
    work_ = &work;
    busy_ = size() - 1;
    ++round_;
  }
  begun_.notify_all();
  carry_out(0);
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(failure_);
}

void RankTeam::check() const {
  const std::lock_guard lock(mutex_);
  if (failure_) throw comm::AbortedByPeer(cause_);
}

// Runs in a rank's thread: carries out one work after the other until the team is over.
void RankTeam::live(int rank) {
  tensor::use_one_aten_thread();
  const base::LogPrefix prefix(fmt::format("device {}", rank));
  for (int64_t done = 0;; ++done) {
    {
      std::unique_lock lock(mutex_);
      begun_.wait(lock, [&] { return over_ || round_ > done; });
      if (over_) return;
    }
    carry_out(rank);
    const std::lock_guard lock(mutex_);
    if (--busy_ == 0) ended_.notify_all();
  }
}

void RankTeam::carry_out(int rank) {
  try {
    (*work_)(base::at(places_, rank));
  } catch (const comm::AbortedByPeer& error) {
    fail(rank, error.what(), /*own=*/false);
  } catch (const std::exception& error) {
    fail(rank, error.what(), /*own=*/true);
  }
}

// Keeps the first cause, or the first that is a rank's own failure if there is one, and ends the waits for this rank.
void RankTeam::fail(int rank, const std::string& cause, bool own) {
  {
    const std::lock_guard lock(mutex_);
    if (!failure_ || (own && !is_own_failure_)) {
      failure_ = std::current_exception();
      is_own_failure_ = own;
      cause_ = cause;
    }
  }
  base::at(groups_, rank).abort(cause);
}

}  // namespace collimate::cli

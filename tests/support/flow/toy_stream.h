#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/comm/group.h"
#include "collimate/flow/module.h"

// The toy policy's weights and its stream.
namespace collimate::flow::toy {

// The shared "model": four numbers.
struct Numbers {
  std::vector<float> values = std::vector<float>(4, 0.0F);
  uint64_t version = 0;
};

// Calls of any Reward in this process: lets a test tie the policy's progress to the reward's.
inline std::atomic<int> reward_calls{0};
// Row uid takes uid % 3 + 1 steps; its completion is {uid % 7, weights, iteration}.
class CountingStream : public Stream {
 public:
  // `patient`: after its first group it finishes no row before a reward has been called. `twice`: it gives its first
  // row with the rows of the next step again.
  CountingStream(std::shared_ptr<Numbers> numbers, bool patient, const CallInfo& info, bool twice = false)
      : numbers_(std::move(numbers)), patient_(patient), twice_(twice), iteration_(info.iteration) {}
  void feed(const Batch& rows) override {
    for (int64_t uid : rows.all(batch::kUid)) left_[uid] = uid % 3 + 1;
  }
  void close() override { closed_ = true; }
  // Ranks that work on the same rows; a step is an error where they differ. Null for one alone.
  void sum_over(comm::Group* line) { line_ = line; }
  std::function<void()> before_step;

  bool step() override {
    if (paused_ || left_.empty()) return false;
    if (before_step) before_step();
    meet();
    if (patient_ && finished_ >= 4 && reward_calls == 0) return false;  // it waits
    for (auto row = left_.begin(); row != left_.end();) {
      bool waits = patient_ && finished_ >= 4 && reward_calls == 0;
      if (waits || --row->second > 0) {
        ++row;
        continue;
      }
      ready_.push_back(row->first);
      ++finished_;
      row = left_.erase(row);
    }
    return true;
  }
  Batch take() override {
    if (twice_ && first_ && !ready_.empty()) ready_.push_back(*std::exchange(first_, std::nullopt));
    if (twice_ && finished_ > 0 && finished_ == static_cast<int>(ready_.size())) first_ = ready_.front();
    Batch made(static_cast<int64_t>(ready_.size()));
    std::vector<std::vector<int32_t>> ids;
    for (int64_t uid : ready_)
      ids.push_back(
          {static_cast<int32_t>(uid % 7), static_cast<int32_t>(numbers_->values[0]), static_cast<int32_t>(iteration_)});
    made.set(batch::kUid, std::exchange(ready_, {}));
    made.set_ragged(batch::kIds, ids);
    return made;
  }
  bool done() const override { return closed_ && left_.empty() && ready_.empty(); }
  void cancel(std::span<const int64_t> uids) override {
    for (int64_t uid : uids) left_.erase(uid);
  }
  void pause() override { paused_ = true; }
  void resume() override { paused_ = false; }

 private:
  // The sums of equal ranks are those of one times their number.
  void meet() const {
    if (line_ == nullptr) return;
    std::vector<float> mine = {static_cast<float>(left_.size()), static_cast<float>(ready_.size()),
                               numbers_->values[0]};
    for (const auto& [uid, steps] : left_) mine[1] += static_cast<float>((uid % 100 + 1) * steps);
    std::vector<float> all = mine;
    line_->all_reduce(all).wait(30);
    for (size_t i = 0; i < all.size(); ++i)
      if (all[i] != mine[i] * static_cast<float>(line_->size()))
        throw base::RunError(
            fmt::format("[toy policy] ranks differ: {} and {}", fmt::join(mine, ", "), fmt::join(all, ", ")));
  }

  std::shared_ptr<Numbers> numbers_;
  comm::Group* line_ = nullptr;
  bool patient_, twice_;
  std::optional<int64_t> first_;
  int finished_ = 0;
  int64_t iteration_;
  std::map<int64_t, int64_t> left_;
  std::vector<int64_t> ready_;
  bool closed_ = false, paused_ = false;
};

}  // namespace collimate::flow::toy

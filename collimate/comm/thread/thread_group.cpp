#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/comm/group.h"

namespace collimate::comm {
namespace {

// What the ranks of one group share. A collective is: publish my buffers, meet, work on my piece, meet.
struct Shared {
  Shared(std::string group_name, int ranks)
      : name(std::move(group_name)),
        size(ranks),
        in(static_cast<size_t>(ranks)),
        out(static_cast<size_t>(ranks)),
        arrived(static_cast<size_t>(ranks)),
        mail(static_cast<size_t>(ranks * ranks)) {}

  const std::string name;
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::span<const std::byte>> in;  // of each rank in the collective that runs
  std::vector<float*> out;
  std::vector<uint64_t> arrived;  // meetings each rank has come to
  std::vector<float> scratch;
  std::vector<std::span<const std::byte>> mail;  // [from · size + to]: a send that waits for its receive
  std::string cause;                             // of an abort
  base::Heartbeat heartbeat;                     // of all ranks together
  int joined = 0;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(std::shared_ptr<Shared> shared, int rank, double deadline_seconds)
      : shared_(std::move(shared)), rank_(rank), deadline_seconds_(deadline_seconds) {}

  int rank() const override { return rank_; }
  int size() const override { return shared_->size; }

  tensor::Pending all_reduce(std::span<float> values) override {
    return reduce(values, [](auto parts, size_t begin, size_t end, float* out) { tree_sum(parts, begin, end, out); });
  }

  tensor::Pending all_reduce_max(std::span<float> values) override {
    return reduce(values, [](auto parts, size_t begin, size_t end, float* out) {
      for (size_t i = begin; i < end; ++i) {
        float best = parts[0][i];
        for (const float* part : parts) best = std::max(best, part[i]);
        out[i - begin] = best;
      }
    });
  }

  tensor::Pending reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    publish(std::as_bytes(all));
    meet("reduce_scatter");
    std::vector<const float*> parts = published_floats(all.size());
    size_t begin = static_cast<size_t>(rank_) * mine.size();
    tree_sum(parts, begin, begin + mine.size(), mine.data());
    meet("reduce_scatter");
    return {};
  }

  tensor::Pending all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    publish(mine);
    meet("all_gather");
    for (size_t r = 0; r < shared_->in.size(); ++r) copy(shared_->in[r], all.subspan(r * mine.size(), mine.size()));
    meet("all_gather");
    return {};
  }

  tensor::Pending broadcast(std::span<std::byte> bytes, int root) override {
    publish(bytes);
    meet("broadcast");
    if (rank_ != root) copy(shared_->in[static_cast<size_t>(root)], bytes);
    meet("broadcast");
    return {};
  }

  tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    publish(out);
    meet("all_to_all");
    size_t piece = in.size() / shared_->in.size();
    for (size_t r = 0; r < shared_->in.size(); ++r)
      copy(shared_->in[r].subspan(static_cast<size_t>(rank_) * piece, piece), in.subspan(r * piece, piece));
    meet("all_to_all");
    return {};
  }

  void send(std::span<const std::byte> bytes, int to) override {
    std::unique_lock lock(shared_->mutex);
    auto& slot = shared_->mail[static_cast<size_t>(rank_ * size() + to)];
    await(lock, fmt::format("send to rank {}", to), [&] { return slot.data() == nullptr; });
    static const std::byte kNothing{};
    slot = bytes.empty() ? std::span(&kNothing, 0) : bytes;
    shared_->changed.notify_all();
    await(lock, fmt::format("send to rank {}", to), [&] { return slot.data() == nullptr; });
  }

  void receive(std::span<std::byte> bytes, int from) override {
    std::unique_lock lock(shared_->mutex);
    auto& slot = shared_->mail[static_cast<size_t>(from * size() + rank_)];
    await(lock, fmt::format("receive from rank {}", from), [&] { return slot.data() != nullptr; });
    copy(slot, bytes);
    slot = {};
    shared_->changed.notify_all();
  }

  void barrier() override { meet("barrier"); }

  void abort(const std::string& cause) override {
    std::lock_guard lock(shared_->mutex);
    if (shared_->cause.empty()) shared_->cause = cause.empty() ? "aborted" : cause;
    shared_->changed.notify_all();
  }

  void beat() override { shared_->heartbeat.beat(); }

 private:
  template <class Combine>
  tensor::Pending reduce(std::span<float> values, Combine combine) {
    publish(std::as_bytes(values));
    if (rank_ == 0) shared_->scratch.resize(values.size());
    meet("all_reduce");
    std::vector<const float*> parts = published_floats(values.size());
    auto part = [&](size_t r) { return values.size() * r / parts.size(); };
    size_t begin = part(static_cast<size_t>(rank_));
    size_t end = part(static_cast<size_t>(rank_) + 1);
    combine(std::span<const float* const>(parts), begin, end, shared_->scratch.data() + begin);
    meet("all_reduce");
    std::copy(shared_->scratch.begin(), shared_->scratch.end(), values.begin());
    meet("all_reduce");
    return {};
  }

  void publish(std::span<const std::byte> bytes) { shared_->in[static_cast<size_t>(rank_)] = bytes; }

  std::vector<const float*> published_floats(size_t count) const {
    std::vector<const float*> parts;
    for (std::span<const std::byte> bytes : shared_->in) {
      check_size(bytes.size(), count * sizeof(float));
      parts.push_back(reinterpret_cast<const float*>(bytes.data()));
    }
    return parts;
  }

  void check_size(size_t got, size_t expected) const {
    if (got != expected)
      throw base::RunError(base::expectation("group " + shared_->name,
                                             fmt::format("{} bytes from every rank", expected), std::to_string(got)));
  }

  void copy(std::span<const std::byte> from, std::span<std::byte> to) const {
    check_size(from.size(), to.size());
    if (!to.empty()) std::memmove(to.data(), from.data(), to.size());
  }

  // Returns when every rank has come to its meeting of this number.
  void meet(const char* what) {
    std::unique_lock lock(shared_->mutex);
    uint64_t mine = ++shared_->arrived[static_cast<size_t>(rank_)];
    shared_->changed.notify_all();
    auto all_here = [&] {
      return std::all_of(shared_->arrived.begin(), shared_->arrived.end(), [&](uint64_t n) { return n >= mine; });
    };
    await(lock, what, all_here, mine);
  }

  template <class Ready>
  void await(std::unique_lock<std::mutex>& lock, const std::string& what, Ready ready, uint64_t meeting = 0) {
    auto aborted = [&] { throw base::RunError(fmt::format("[group {}] {}", shared_->name, shared_->cause)); };
    if (!shared_->cause.empty()) aborted();
    base::Deadline deadline = base::Deadline::after_last_beat(deadline_seconds_, shared_->heartbeat);
    bool in_time =
        base::wait_until(shared_->changed, lock, deadline, [&] { return !shared_->cause.empty() || ready(); });
    if (ready()) return;  // complete before an abort
    if (!shared_->cause.empty()) aborted();
    if (!in_time)
      throw base::RunError(
          fmt::format("[group {}] rank {} waited in {}{}: no progress of any rank for {} s (run.deadline_seconds)",
                      shared_->name, rank_, what, meeting > 0 ? absent(meeting) : "", deadline_seconds_));
  }

  std::string absent(uint64_t meeting) const {
    std::vector<int> ranks;
    for (int r = 0; r < size(); ++r)
      if (shared_->arrived[static_cast<size_t>(r)] < meeting) ranks.push_back(r);
    return fmt::format(" for rank {}", fmt::join(ranks, ", "));
  }

  std::shared_ptr<Shared> shared_;
  const int rank_;
  const double deadline_seconds_;
};

// Groups that some ranks have joined and others not yet.
struct Lobby {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Shared>> open;
};

std::shared_ptr<Shared> join(const GroupPlace& place) {
  static Lobby lobby;
  std::lock_guard lock(lobby.mutex);
  std::shared_ptr<Shared>& shared = lobby.open[place.name];
  if (!shared) shared = std::make_shared<Shared>(place.name, place.size);
  std::shared_ptr<Shared> mine = shared;
  if (++mine->joined == place.size) lobby.open.erase(place.name);
  return mine;
}

}  // namespace

std::unique_ptr<Group> thread_group(const GroupPlace& place) {
  COLLIMATE_CHECK(place.rank >= 0 && place.rank < place.size);
  auto group = std::make_unique<ThreadGroup>(join(place), place.rank, place.deadline_seconds);
  group->barrier();
  return group;
}

}  // namespace collimate::comm

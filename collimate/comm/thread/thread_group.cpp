#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/comm/cause.h"
#include "collimate/comm/group.h"

namespace collimate::comm {
namespace {

// The ranks of one group share this. A collective is: publish my buffers, meet, read what the ranks published, meet. A
// rank that leaves a collective early, by an abort or an expired deadline, takes its buffers with it, so that it first
// waits until no rank reads; none begins to read after an abort.
struct Shared {
  Shared(std::string group_name, int ranks)
      : name(std::move(group_name)),
        size(ranks),
        in(static_cast<size_t>(ranks)),
        arrived(static_cast<size_t>(ranks)),
        mail(static_cast<size_t>(ranks * ranks)) {}

  const std::string name;
  const int size;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::span<const std::byte>> in;  // of each rank in the collective that runs
  std::vector<uint64_t> arrived;               // meetings each rank has come to
  std::vector<float> scratch;
  std::vector<std::span<const std::byte>> mail;  // [from · size + to]: a send that waits for its receive
  std::string cause;                             // the message of an abort, "" before one
  int readers = 0;                               // ranks between the two meetings, which read published buffers
  base::Heartbeat heartbeat;                     // of all ranks together
  int joined = 0;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(std::shared_ptr<Shared> shared, int rank, double deadline_seconds)
      : shared_(std::move(shared)), rank_(rank), deadline_seconds_(deadline_seconds) {}

  int rank() const override { return rank_; }
  int size() const override { return shared_->size; }

  tensor::Pending all_reduce(std::span<float> values) override { return reduce(values, tree_sum); }
  tensor::Pending all_reduce_max(std::span<float> values) override { return reduce(values, max_over); }

  tensor::Pending reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    return exchange("reduce_scatter", std::as_bytes(all), [&] {
      check_size(all.size_bytes(), mine.size_bytes() * shared_->in.size());
      const std::vector<const float*> parts = published_floats(all.size());
      const size_t begin = static_cast<size_t>(rank_) * mine.size();
      tree_sum(parts, begin, begin + mine.size(), mine.data());
    });
  }

  tensor::Pending all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return exchange("all_gather", mine, [&] {
      check_size(all.size(), mine.size() * shared_->in.size());
      for (size_t r = 0; r < shared_->in.size(); ++r) copy(shared_->in[r], all.subspan(r * mine.size(), mine.size()));
    });
  }

  tensor::Pending broadcast(std::span<std::byte> bytes, int root) override {
    return exchange("broadcast", bytes, [&] {
      if (rank_ != root) copy(base::at(shared_->in, root), bytes);
    });
  }

  tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    return exchange("all_to_all", out, [&] {
      const size_t piece = in.size() / shared_->in.size();
      check_size(out.size(), in.size());
      for (size_t r = 0; r < shared_->in.size(); ++r)
        copy(shared_->in[r].subspan(static_cast<size_t>(rank_) * piece, piece), in.subspan(r * piece, piece));
    });
  }

  void send(std::span<const std::byte> bytes, int to) override {
    std::unique_lock lock(shared_->mutex);
    auto& slot = base::at(shared_->mail, rank_ * size() + to);
    await(lock, fmt::format("send to rank {}", to), [&] { return slot.data() == nullptr; });
    static const std::byte kNothing{};
    slot = bytes.empty() ? std::span(&kNothing, 0) : bytes;
    shared_->changed.notify_all();
    await(lock, fmt::format("send to rank {}", to), [&] { return slot.data() == nullptr; });
  }

  void receive(std::span<std::byte> bytes, int from) override {
    std::unique_lock lock(shared_->mutex);
    auto& slot = base::at(shared_->mail, from * size() + rank_);
    await(lock, fmt::format("receive from rank {}", from), [&] { return slot.data() != nullptr; });
    try {
      copy(slot, bytes);
    } catch (const std::exception& error) {
      abort_locked(error.what());
      throw;
    }
    slot = {};
    shared_->changed.notify_all();
  }

  void barrier() override { meet("barrier"); }

  void abort(const std::string& cause) override {
    std::lock_guard lock(shared_->mutex);
    abort_locked(fmt::format("[group {}] {}", shared_->name, cause.empty() ? "aborted" : cause));
  }

  void beat() override { shared_->heartbeat.beat(); }

 private:
  template <class Combine>
  tensor::Pending reduce(std::span<float> values, Combine combine) {
    if (rank_ == 0) {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->cause.empty()) shared_->scratch.resize(values.size());
    }
    exchange("all_reduce", std::as_bytes(values), [&] {
      const std::vector<const float*> parts = published_floats(values.size());
      const auto part = [&](size_t r) { return values.size() * r / parts.size(); };
      const size_t begin = part(static_cast<size_t>(rank_)), end = part(static_cast<size_t>(rank_) + 1);
      combine(std::span<const float* const>(parts), begin, end, shared_->scratch.data() + begin);
    });
    std::copy(shared_->scratch.begin(), shared_->scratch.end(), values.begin());
    meet("all_reduce");
    return {};
  }

  // Between two meetings `read` may use what every rank published.
  template <class Read>
  tensor::Pending exchange(const char* what, std::span<const std::byte> published, Read read) {
    {
      const std::lock_guard lock(shared_->mutex);
      if (shared_->cause.empty()) base::at(shared_->in, rank_) = published;
    }
    meet(what, 1);
    try {
      read();
    } catch (const std::exception& error) {
      stop_reading(error.what());
      throw;
    }
    stop_reading("");
    meet(what);
    return {};
  }

  // A rank that failed leaves, so that it waits for the other readers as every rank that leaves does.
  void stop_reading(const std::string& failure) {
    std::unique_lock lock(shared_->mutex);
    --shared_->readers;
    if (!failure.empty()) abort_locked(failure);
    shared_->changed.notify_all();
    if (!failure.empty()) shared_->changed.wait(lock, [&] { return shared_->readers == 0; });
  }

  // Whether this is the first abort: its cause stays.
  bool abort_locked(const std::string& cause) {
    const bool first = shared_->cause.empty();
    if (first) shared_->cause = cause;
    shared_->changed.notify_all();
    return first;
  }

  std::vector<const float*> published_floats(size_t count) const {
    std::vector<const float*> parts;
    for (std::span<const std::byte> bytes : shared_->in) {
      check_size(bytes.size(), count * sizeof(float));
      parts.push_back(reinterpret_cast<const float*>(bytes.data()));
    }
    return parts;
  }

  void check_size(size_t got, size_t expected) const {
    if (got != expected) throw base::RunError(other_size(shared_->name, got, expected));
  }

  void copy(std::span<const std::byte> from, std::span<std::byte> to) const {
    check_size(from.size(), to.size());
    if (!to.empty() && to.data() != from.data()) std::memmove(to.data(), from.data(), to.size());
  }

  // Returns when every rank has come to its meeting of this number, this one as one of `readers`.
  void meet(const char* what, int readers = 0) {
    std::unique_lock lock(shared_->mutex);
    uint64_t mine = ++base::at(shared_->arrived, rank_);
    shared_->changed.notify_all();
    auto all_here = [&] {
      return std::all_of(shared_->arrived.begin(), shared_->arrived.end(), [&](uint64_t n) { return n >= mine; });
    };
    await(lock, what, all_here, mine);
    shared_->readers += readers;
  }

  // Throws after an abort, and aborts the group where the deadline expires.
  template <class Ready>
  void await(std::unique_lock<std::mutex>& lock, const std::string& what, Ready ready, uint64_t meeting = 0) {
    const base::Deadline deadline = base::Deadline::after_last_beat(deadline_seconds_, shared_->heartbeat);
    const auto over = [&] { return !shared_->cause.empty() || ready(); };
    bool mine = false;
    if (!base::wait_until(shared_->changed, lock, deadline, over))
      mine = abort_locked(expired(waited(shared_->name, rank_, what, absent(meeting)), deadline_seconds_));
    if (shared_->cause.empty()) return;
    shared_->changed.wait(lock, [&] { return shared_->readers == 0; });
    if (mine) throw base::RunError(shared_->cause);
    throw AbortedByPeer(shared_->cause);
  }

  std::vector<int> absent(uint64_t meeting) const {
    std::vector<int> ranks;
    for (int r = 0; r < size(); ++r)
      if (base::at(shared_->arrived, r) < meeting) ranks.push_back(r);
    return ranks;
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

// Ranks are threads of this process that call it with one name.
std::unique_ptr<Group> join_threads(const GroupPlace& place) {
  COLLIMATE_CHECK(place.rank >= 0 && place.rank < place.size);
  auto group = std::make_unique<ThreadGroup>(join(place), place.rank, place.deadline_seconds);
  group->barrier();
  return group;
}

}  // namespace

BackEnd thread_back_end() { return {"threads", join_threads}; }

}  // namespace collimate::comm

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/comm/cause.h"
#include "collimate/comm/group.h"
#include "collimate/comm/spins.h"

namespace collimate::comm {
namespace {

// A RankState is one rank's side of a collective. Collectives use two turns alternately, so that a rank may publish for
// the next one while others still read this one. A rank that comes back to a turn has met everyone since.
struct alignas(64) RankState {
  std::atomic<uint64_t> arrived = 0;                                 // meetings that the rank has come to
  std::array<std::span<const std::byte>, 2> in;                      // what it has published, by turn
  alignas(64) std::array<std::array<float, kSmallFloats>, 2> small;  // copies of small values of it
};

struct Mail {
  std::atomic<bool> full = false;
  std::span<const std::byte> bytes;  // a send that waits for its receive
};

// The ranks of one group share a Shared. In a collective a rank publishes its buffers, meets the others, reads what
// they published, and meets them again. Meetings are counters that a rank checks for a moment before it sleeps on the
// condition. A rank that leaves a collective early, by an abort or an expired deadline, takes its buffers with it, so
// it first waits until no rank reads; none begins to read after an abort.
struct Shared {
  Shared(std::string group_name, int ranks)
      : name(std::move(group_name)),
        size(ranks),
        state(static_cast<size_t>(ranks)),
        mail(static_cast<size_t>(ranks * ranks)) {}

  const std::string name;
  const int size;
  std::vector<RankState> state;
  std::vector<Mail> mail;         // [from · size + to]
  std::atomic<int> readers = 0;   // ranks that read what others published
  std::atomic<int> sleepers = 0;  // ranks that wait on the condition
  std::atomic<bool> aborted = false;
  std::mutex mutex;  // guards all below, and going to sleep
  std::condition_variable changed;
  std::string cause;          // the message of an abort, written before `aborted` is set
  base::Heartbeat heartbeat;  // of all ranks together
  int joined = 0;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(std::shared_ptr<Shared> shared, int rank, double deadline_seconds)
      : shared_(std::move(shared)), rank_(rank), deadline_seconds_(deadline_seconds), spins_(spins_of(shared_->size)) {}

  int rank() const override { return rank_; }
  int size() const override { return shared_->size; }

  tensor::Pending all_reduce(std::span<float> values) override { return reduce(values, tree_sum); }
  tensor::Pending all_reduce_max(std::span<float> values) override { return reduce(values, max_over); }

  tensor::Pending reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    return exchange("reduce_scatter", std::as_bytes(all), [&] {
      check_size(all.size_bytes(), mine.size_bytes() * ranks());
      const size_t begin = index(rank_) * mine.size();
      tree_sum(published_floats(all.size()), begin, begin + mine.size(), mine.data());
    });
  }

  tensor::Pending all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return exchange("all_gather", mine, [&] {
      check_size(all.size(), mine.size() * ranks());
      for (size_t r = 0; r < ranks(); ++r) copy(published(r), all.subspan(r * mine.size(), mine.size()));
    });
  }

  tensor::Pending broadcast(std::span<std::byte> bytes, int root) override {
    return exchange("broadcast", bytes, [&] {
      if (rank_ != root) copy(published(index(root)), bytes);
    });
  }

  tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    return exchange("all_to_all", out, [&] {
      const size_t piece = in.size() / ranks();
      check_size(out.size(), in.size());
      for (size_t r = 0; r < ranks(); ++r)
        copy(published(r).subspan(index(rank_) * piece, piece), in.subspan(r * piece, piece));
    });
  }

  tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                             std::span<const size_t> bytes) override {
    const PieceTable table{bytes, ranks()};
    const size_t me = index(rank_);
    return exchange("all_to_all", out, [&] {
      check_size(in.size(), table.in_bytes(me));
      for (size_t r = 0; r < ranks(); ++r) {
        check_size(published(r).size(), table.out_bytes(r));
        copy(published(r).subspan(table.out_begin(r, me), table.at(r, me)),
             in.subspan(table.in_begin(r, me), table.at(r, me)));
      }
    });
  }

  void send(std::span<const std::byte> bytes, int to) override {
    Mail& mail = base::at(shared_->mail, rank_ * size() + to);
    const auto taken = [&] { return !mail.full; };
    await({"send to", to}, taken);
    mail.bytes = bytes;
    mail.full = true;
    notify();
    await({"send to", to}, taken);
  }

  void receive(std::span<std::byte> bytes, int from) override {
    Mail& mail = base::at(shared_->mail, from * size() + rank_);
    await({"receive from", from}, [&] { return mail.full.load(); });
    read([&] {
      copy(mail.bytes, bytes);
      mail.full = false;
    });
    notify();
  }

  void barrier() override { meet("barrier"); }

  void abort(const std::string& cause) override {
    abort_for(fmt::format("[group {}] {}", shared_->name, cause.empty() ? "aborted" : cause));
  }

  void beat() override { shared_->heartbeat.beat(); }

 private:
  // A Wait is for every rank to come to a meeting, or for one rank at the other end of a message.
  struct Wait {
    const char* what;
    int peer = -1;
  };

  static size_t index(int rank) { return static_cast<size_t>(rank); }
  size_t ranks() const { return shared_->state.size(); }
  RankState& mine() const { return base::at(shared_->state, rank_); }
  std::span<const std::byte> published(size_t rank) const { return shared_->state[rank].in[turn_]; }

  // Makes each rank's part of the values their sum in its own buffer, where no other rank reads that part. Then each
  // rank copies the parts of the others.
  template <class Combine>
  tensor::Pending reduce(std::span<float> values, Combine combine) {
    if (values.size() <= kSmallFloats) return reduce_small(values, combine);
    const auto border = [&](size_t r) { return values.size() * r / ranks(); };
    const size_t begin = border(index(rank_)), end = border(index(rank_) + 1);
    publish("all_reduce", std::as_bytes(values));
    read([&] { combine(published_floats(values.size()), begin, end, values.data() + begin); });
    meet("all_reduce");
    read([&] {
      for (size_t r = 0; r < ranks(); ++r) {
        const std::span<float> part = values.subspan(border(r), border(r + 1) - border(r));
        copy(published(r).subspan(border(r) * sizeof(float), part.size_bytes()), std::as_writable_bytes(part));
      }
    });
    meet("all_reduce");
    return {};
  }

  // Lets every rank compute the whole sum, from copies that stay when their rank goes on.
  template <class Combine>
  tensor::Pending reduce_small(std::span<float> values, Combine combine) {
    const size_t next = turn_ ^ 1;
    throw_if_aborted();  // otherwise another rank may still read the copy
    std::ranges::copy(values, base::at(mine().small, next).begin());
    publish("all_reduce", std::as_bytes(values));
    std::vector<const float*> parts;
    for (const RankState& state : shared_->state) {
      if (state.in[turn_].size() != values.size_bytes())
        fail(other_size(shared_->name, state.in[turn_].size(), values.size_bytes()));
      parts.push_back(state.small[turn_].data());
    }
    combine(parts, 0, values.size(), values.data());
    return {};
  }

  // Publishes bytes, and calls `look` between two meetings, when it may use what every rank published.
  template <class Look>
  tensor::Pending exchange(const char* what, std::span<const std::byte> bytes, Look look) {
    publish(what, bytes);
    read(look);
    meet(what);
    return {};
  }

  void publish(const char* what, std::span<const std::byte> bytes) {
    throw_if_aborted();
    turn_ ^= 1;
    base::at(mine().in, turn_) = bytes;
    meet(what);
  }

  // Calls `look` as a reader. A rank whose `look` fails leaves the group, so it waits for the other readers like every
  // rank that leaves.
  template <class Look>
  void read(Look look) {
    ++shared_->readers;
    if (shared_->aborted) {
      stop_reading();
      leave();
    }
    try {
      look();
    } catch (const std::exception& error) {
      abort_for(error.what());
      stop_reading();
      await_readers();
      throw;
    }
    stop_reading();
  }
  void stop_reading() const {
    --shared_->readers;
    if (shared_->aborted) notify();
  }

  // Aborts the group. Returns whether this is the first abort, whose cause stays.
  bool abort_for(const std::string& cause) const {
    const std::lock_guard lock(shared_->mutex);
    return abort_locked(cause);
  }
  bool abort_locked(const std::string& cause) const {
    const bool first = !shared_->aborted;
    if (first) {
      shared_->cause = cause;
      shared_->aborted = true;
    }
    shared_->changed.notify_all();
    return first;
  }

  void throw_if_aborted() const {
    if (shared_->aborted) leave();
  }
  [[noreturn]] void leave() const {
    await_readers();
    throw AbortedByPeer(shared_->cause);
  }
  [[noreturn]] void fail(const std::string& cause) const {
    const bool first = abort_for(cause);
    if (!first) leave();
    await_readers();
    throw base::RunError(cause);
  }
  void await_readers() const {
    std::unique_lock lock(shared_->mutex);
    const Sleeper here(*shared_);
    shared_->changed.wait(lock, [&] { return shared_->readers == 0; });
  }

  std::vector<const float*> published_floats(size_t count) const {
    std::vector<const float*> parts;
    for (size_t r = 0; r < ranks(); ++r) {
      check_size(published(r).size(), count * sizeof(float));
      parts.push_back(reinterpret_cast<const float*>(published(r).data()));
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

  // Returns when every rank has come to the meeting of this number.
  void meet(const char* what) {
    throw_if_aborted();
    mine().arrived = ++meetings_;
    notify();
    await({what}, [&] {
      return std::ranges::all_of(shared_->state, [&](const RankState& one) { return one.arrived >= meetings_; });
    });
  }

  struct Sleeper {
    explicit Sleeper(Shared& of) : shared(of) { ++shared.sleepers; }
    ~Sleeper() { --shared.sleepers; }
    Shared& shared;
  };

  // Wakes sleeping ranks. A rank that goes to sleep counts itself first and then checks once more.
  void notify() const {
    if (shared_->sleepers == 0) return;
    { const std::lock_guard lock(shared_->mutex); }
    shared_->changed.notify_all();
  }

  // Waits until `ready()`. Throws after an abort, and aborts the group when the deadline expires.
  template <class Ready>
  void await(const Wait& wait, Ready ready) {
    for (int spin = 0; spin < spins_ && !shared_->aborted; ++spin) {
      if (ready()) return;
      __builtin_ia32_pause();
    }
    std::unique_lock lock(shared_->mutex);
    const Sleeper here(*shared_);
    const base::Deadline deadline = base::Deadline::after_last_beat(deadline_seconds_, shared_->heartbeat);
    const auto over = [&] { return shared_->aborted || ready(); };
    bool first = false;
    if (!base::wait_until(shared_->changed, lock, deadline, over))
      first = abort_locked(expired(text_of(wait), deadline_seconds_));
    if (!first && ready()) return;
    shared_->changed.wait(lock, [&] { return shared_->readers == 0; });
    if (first) throw base::RunError(shared_->cause);
    throw AbortedByPeer(shared_->cause);
  }

  std::string text_of(const Wait& wait) const {
    if (wait.peer >= 0) return waited(shared_->name, rank_, fmt::format("{} rank {}", wait.what, wait.peer), {});
    std::vector<int> absent;
    for (int r = 0; r < size(); ++r)
      if (base::at(shared_->state, r).arrived < meetings_) absent.push_back(r);
    return waited(shared_->name, rank_, wait.what, absent);
  }

  std::shared_ptr<Shared> shared_;
  const int rank_;
  const double deadline_seconds_;
  const int spins_;
  uint64_t meetings_ = 0;  // meetings that this rank has come to
  size_t turn_ = 0;
};

// A Lobby holds groups that some ranks have joined and others not yet.
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

// Joins a group whose ranks are threads of this process that call this with one name.
std::unique_ptr<Group> join_threads(const GroupPlace& place) {
  COLLIMATE_CHECK(place.rank >= 0 && place.rank < place.size);
  auto group = std::make_unique<ThreadGroup>(join(place), place.rank, place.deadline_seconds);
  group->barrier();
  return group;
}

}  // namespace

BackEnd thread_back_end() { return {"threads", join_threads}; }

}  // namespace collimate::comm

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "collimate/base/at.h"
#include "collimate/base/deadline.h"
#include "collimate/base/error.h"
#include "collimate/comm/cause.h"
#include "collimate/comm/group.h"
#include "collimate/comm/shm/shared_segment.h"
#include "collimate/comm/spins.h"
#include "collimate/host/file_io.h"

namespace collimate::comm {
namespace {

using std::chrono::steady_clock;

constexpr auto kLookEvery = std::chrono::milliseconds(50);  // how often to check the processes that are waited for
constexpr auto kLongestCause = std::chrono::seconds(1);     // longest time in which a rank that aborts writes the cause
constexpr size_t kLine = 64;

// A Peer is the process of another rank. Its id may one day belong to another process, its descriptor never.
class Peer {
 public:
  explicit Peer(int32_t process) : process_(process), file_(static_cast<int>(::syscall(SYS_pidfd_open, process, 0))) {
    if (!file_.valid() && errno != ESRCH) host::throw_io_error(fmt::format("process {}", process), "to open", errno);
  }
  int32_t process() const { return process_; }
  bool ended() const {
    pollfd poll{file_.get(), POLLIN, 0};
    return !file_.valid() || ::poll(&poll, 1, 0) == 1;
  }

 private:
  int32_t process_;
  host::FileDescriptor file_;  // invalid where it had ended before
};

// Returns how many bytes of a cause fit, cut between two characters of UTF-8.
size_t fitting_bytes(const std::string& cause) {
  size_t end = std::min(cause.size(), shm::kCauseBytes - 1);
  while (end < cause.size() && end > 0 && (static_cast<unsigned char>(cause[end]) & 0xC0U) == 0x80U) --end;
  return end;
}

void copy(const void* from, size_t bytes, void* to) {
  if (bytes > 0) std::memmove(to, from, bytes);
}

// A ShmGroup's ranks are processes of one machine. A collective goes through buffers in shared memory, a part at a
// time: each rank writes its part into its own buffer, all meet, and each reads what the others wrote. The next part
// uses other buffers. A rank that comes back to the first ones has met everyone since, so nobody reads them any more.
class ShmGroup final : public Group {
 public:
  explicit ShmGroup(const GroupPlace& place)
      : name_(place.name),
        rank_(place.rank),
        size_(place.size),
        deadline_seconds_(place.deadline_seconds),
        spins_(spins_of(place.size)),
        segment_(place),
        control_(segment_.control()) {
    state(rank_).process = ::getpid();
    meet("barrier");
    for (int r = 0; r < size_; ++r) peers_.emplace_back(state(r).process);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  tensor::Pending all_reduce(std::span<float> values) override { return reduce(values, tree_sum); }
  tensor::Pending all_reduce_max(std::span<float> values) override { return reduce(values, max_over); }

  tensor::Pending reduce_scatter(std::span<const float> all, std::span<float> mine) override {
    require(all.size_bytes(), mine.size_bytes() * ranks());
    return pieces("reduce_scatter", std::as_bytes(all), mine.size_bytes(), [&](size_t at, size_t bytes) {
      const size_t count = bytes / sizeof(float), begin = index(rank_) * count;
      tree_sum(published_floats(), begin, begin + count, mine.data() + at / sizeof(float));
    });
  }

  tensor::Pending all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    require(all.size(), mine.size() * ranks());
    return parts(mine.size(), shm::kBufferBytes, [&](size_t at, size_t bytes) {
      exchange("all_gather", mine.size(), [&](std::byte* out) { copy(mine.data() + at, bytes, out); });
      for (int r = 0; r < size_; ++r) copy(published(r), bytes, all.data() + index(r) * mine.size() + at);
    });
  }

  tensor::Pending broadcast(std::span<std::byte> bytes, int root) override {
    return parts(bytes.size(), shm::kBufferBytes, [&](size_t at, size_t count) {
      exchange("broadcast", bytes.size(), [&](std::byte* out) {
        if (rank_ == root) copy(bytes.data() + at, count, out);
      });
      if (rank_ != root) copy(published(root), count, bytes.data() + at);
    });
  }

  tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in) override {
    require(out.size(), in.size());
    const size_t piece = in.size() / ranks();
    return pieces("all_to_all", out, piece, [&](size_t at, size_t bytes) {
      for (int r = 0; r < size_; ++r)
        copy(published(r) + index(rank_) * bytes, bytes, in.data() + index(r) * piece + at);
    });
  }

  // Each piece is sent a part at a time, through a place of its own in its rank's buffer.
  tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                             std::span<const size_t> bytes) override {
    const PieceTable table{bytes, ranks()};
    const size_t me = index(rank_), place = shm::kBufferBytes / ranks() / kLine * kLine;
    require(out.size(), table.out_bytes(me));
    require(in.size(), table.in_bytes(me));
    const size_t total = std::accumulate(bytes.begin(), bytes.end(), size_t{0});
    return parts(table.longest(), place, [&](size_t at, size_t) {
      const auto rest = [&](size_t from, size_t to) { return std::min(place, table.at(from, to) - at); };
      exchange("all_to_all", total, [&](std::byte* to_all) {
        for (size_t r = 0; r < ranks(); ++r)
          if (table.at(me, r) > at) copy(out.data() + table.out_begin(me, r) + at, rest(me, r), to_all + r * place);
      });
      for (size_t r = 0; r < ranks(); ++r)
        if (table.at(r, me) > at)
          copy(published(static_cast<int>(r)) + me * place, rest(r, me), in.data() + table.in_begin(r, me) + at);
    });
  }

  void send(std::span<const std::byte> bytes, int to) override {
    shm::Mail& mail = mail_of(rank_, to);
    const auto taken = [&] { return mail.full == 0; };
    throw_if_aborted();
    parts(bytes.size(), shm::kMailBytes, [&](size_t at, size_t count) {
      await({"send to", to}, taken);
      mail.bytes = bytes.size();
      copy(bytes.data() + at, count, segment_.mail(rank_, to));
      mail.full = 1;
      segment_.notify();
    });
    await({"send to", to}, taken);
  }

  void receive(std::span<std::byte> bytes, int from) override {
    shm::Mail& mail = mail_of(from, rank_);
    throw_if_aborted();
    parts(bytes.size(), shm::kMailBytes, [&](size_t at, size_t count) {
      await({"receive from", from}, [&] { return mail.full == 1; });
      require(mail.bytes, bytes.size());
      copy(segment_.mail(from, rank_), count, bytes.data() + at);
      mail.full = 0;
      segment_.notify();
    });
  }

  void barrier() override { meet("barrier"); }
  void abort(const std::string& cause) override {
    abort_for(fmt::format("[group {}] {}", name_, cause.empty() ? "aborted" : cause));
  }
  void beat() override { control_.heartbeat.beat(); }

 private:
  // A Wait is for every rank to come to a meeting, or for one rank at the other end of a message.
  struct Wait {
    const char* what;
    int peer = -1;
  };

  static size_t index(int rank) { return static_cast<size_t>(rank); }
  size_t ranks() const { return index(size_); }
  shm::RankState& state(int rank) const { return base::at(control_.ranks, rank); }
  shm::Mail& mail_of(int from, int to) const { return base::at(control_.mail, from * size_ + to); }
  // These return what a rank published in the last exchange. They are valid until the next one.
  const std::byte* published(int rank) const { return segment_.buffer(turn_, rank); }
  std::vector<const float*> published_floats() const {
    std::vector<const float*> all;
    for (int r = 0; r < size_; ++r) all.push_back(reinterpret_cast<const float*>(published(r)));
    return all;
  }

  // Calls body(begin, bytes) for all of `total`, with at most `most` bytes at a time. A `total` of 0 gets one call.
  template <class Body>
  static tensor::Pending parts(size_t total, size_t most, Body body) {
    size_t at = 0;
    do {
      const size_t bytes = std::min(most, total - at);
      body(at, bytes);
      at += bytes;
    } while (at < total);
    return {};
  }

  // Publishes a part of each rank's piece of `all`, one after the other.
  template <class Read>
  tensor::Pending pieces(const char* what, std::span<const std::byte> all, size_t piece, Read read) {
    return parts(piece, shm::kBufferBytes / ranks() / kLine * kLine, [&](size_t at, size_t bytes) {
      exchange(what, all.size(), [&](std::byte* out) {
        for (size_t r = 0; r < ranks(); ++r) copy(all.data() + r * piece + at, bytes, out + r * bytes);
      });
      read(at, bytes);
    });
  }

  template <class Combine>
  tensor::Pending reduce(std::span<float> values, Combine combine) {
    return parts(values.size_bytes(), shm::kBufferBytes, [&](size_t at, size_t bytes) {
      float* mine = values.data() + at / sizeof(float);
      exchange("all_reduce", values.size_bytes(), [&](std::byte* out) { copy(mine, bytes, out); });
      const size_t count = bytes / sizeof(float);
      if (count <= kSmallFloats) return combine(published_floats(), 0, count, mine);
      const auto border = [&](int rank) { return count * index(rank) / ranks(); };
      auto* sums = reinterpret_cast<float*>(segment_.sums());
      combine(published_floats(), border(rank_), border(rank_ + 1), sums + border(rank_));
      meet("all_reduce");
      copy(sums, bytes, mine);
    });
  }

  // Lets `fill` write into this rank's buffer; then every rank's buffer is published. `total` is the size of all parts
  // together.
  template <class Fill>
  void exchange(const char* what, size_t total, Fill fill) {
    throw_if_aborted();  // otherwise another rank may still read the buffer
    turn_ ^= 1;
    fill(segment_.buffer(turn_, rank_));
    base::at(state(rank_).bytes, turn_) = total;
    meet(what);
    for (int r = 0; r < size_; ++r) require(base::at(state(r).bytes, turn_), total);
  }

  // Returns when every rank has come to the meeting of this number.
  void meet(const char* what) {
    throw_if_aborted();
    state(rank_).arrived = ++meetings_;
    segment_.notify();
    await({what}, [&] {
      for (int r = 0; r < size_; ++r)
        if (state(r).arrived < meetings_) return false;
      return true;
    });
  }

  std::vector<int> missing(const Wait& wait) const {
    if (wait.peer >= 0) return {wait.peer};
    std::vector<int> all;
    for (int r = 0; r < size_; ++r)
      if (state(r).arrived < meetings_) all.push_back(r);
    return all;
  }

  std::string text_of(const Wait& wait) const {
    if (wait.peer < 0) return waited(name_, rank_, wait.what, missing(wait));
    return waited(name_, rank_, fmt::format("{} rank {}", wait.what, wait.peer), {});
  }

  // Waits until `ready()`. Throws when the group is aborted first. Aborts it when the deadline expires or a process
  // that is waited for has ended.
  template <class Ready>
  void await(const Wait& wait, Ready ready) {
    for (int spin = 0; spin < spins_ && control_.aborted == shm::kNot && !ready(); ++spin) __builtin_ia32_pause();
    const base::Deadline deadline = base::Deadline::after_last_beat(deadline_seconds_, control_.heartbeat);
    steady_clock::time_point look = steady_clock::now() + kLookEvery;
    while (true) {
      const uint32_t seen = control_.changes;
      if (ready()) return;
      throw_if_aborted();
      if (deadline.expired()) fail(expired(text_of(wait), deadline_seconds_));
      if (steady_clock::now() >= look) {
        const Peer* ended = ended_one(wait);
        if (ended != nullptr && !ready()) fail_by(*ended, wait);  // it may have done its part before its end
        look = steady_clock::now() + kLookEvery;
      }
      segment_.sleep(seen, std::min<steady_clock::duration>(base::nap_before(deadline), kLookEvery));
    }
  }

  // Returns a process that is waited for and has ended, or null. While ranks join there is none: until then the process
  // that starts them has to watch them.
  const Peer* ended_one(const Wait& wait) const {
    if (peers_.empty()) return nullptr;
    for (int r : missing(wait))
      if (base::at(peers_, r).ended()) return &base::at(peers_, r);
    return nullptr;
  }

  void fail_by(const Peer& ended, const Wait& wait) const {
    fail(fmt::format("{}: the process of rank {} ({}) has ended", text_of(wait), &ended - peers_.data(),
                     ended.process()));
  }

  void require(size_t got, size_t expected) const {
    if (got != expected) fail(other_size(name_, got, expected));
  }

  void fail(const std::string& cause) const {
    if (abort_for(cause)) throw base::RunError(control_.cause);
    throw_if_aborted();
  }

  // Aborts the group. Returns whether this is the first abort, whose cause stays.
  bool abort_for(const std::string& cause) const {
    uint32_t none = shm::kNot;
    const bool first = control_.aborted.compare_exchange_strong(none, shm::kBeing);
    if (first) {
      copy(cause.data(), fitting_bytes(cause), control_.cause);
      control_.aborted = shm::kAborted;
    }
    segment_.notify();
    return first;
  }

  void throw_if_aborted() const {
    if (control_.aborted == shm::kNot) return;
    const auto limit = steady_clock::now() + kLongestCause;
    while (control_.aborted != shm::kAborted && steady_clock::now() < limit) ::usleep(100);
    if (control_.aborted == shm::kAborted) throw AbortedByPeer(control_.cause);
    throw AbortedByPeer(fmt::format("[group {}] aborted by a rank that ended before it said why", name_));
  }

  const std::string name_;
  const int rank_;
  const int size_;
  const double deadline_seconds_;
  const int spins_;
  const shm::SharedSegment segment_;
  shm::Control& control_;
  std::vector<Peer> peers_;  // by rank; empty while they join
  uint64_t meetings_ = 0;    // meetings that this rank has come to
  size_t turn_ = 0;          // which of the two buffers is used
};

std::unique_ptr<Group> join_processes(const GroupPlace& place) {
  COLLIMATE_CHECK(place.rank >= 0 && place.rank < place.size);
  return std::make_unique<ShmGroup>(place);
}

}  // namespace

BackEnd shm_back_end() { return {"shm", join_processes, shm::open_store}; }

}  // namespace collimate::comm

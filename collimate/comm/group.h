#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/pending.h"

namespace collimate::comm {

// A wait ended because the group was aborted by another rank, whose cause this has. The rank that has found the cause
// itself, or whose deadline expired first, gets a plain RunError.
class AbortedByPeer : public base::RunError {
 public:
  using base::RunError::RunError;
};

// Collectives over an ordered set of ranks; one object per rank, used by that rank's thread (abort: by any thread).
// Every rank calls the same collectives in the same order with the same sizes. What returns a Pending is done when that
// is finished, and owns its buffers until then; back ends on the CPU return it finished. Waits have a deadline; its
// expiry aborts the group with a cause that says which ranks were waited for, as do sizes that differ. After an abort
// every waiting and later call on any rank throws RunError with the cause, once no other rank reads the caller's
// buffers.
//
// Sums are fp32 by a balanced binary tree over the rank index: sum(lo, hi) = sum(lo, mid) + sum(mid, hi) with
// mid = (lo + hi) / 2, in every back end, so that their bits are equal.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // values [n] → the sum over ranks, on every rank.
  virtual tensor::Pending all_reduce(std::span<float> values) = 0;
  // values [n] → the maximum over ranks, on every rank.
  virtual tensor::Pending all_reduce_max(std::span<float> values) = 0;
  // all [size · n] → mine [n]: the sum over ranks of the rank-th piece. Here and in all_gather `mine` may be this
  // rank's piece of `all` itself.
  virtual tensor::Pending reduce_scatter(std::span<const float> all, std::span<float> mine) = 0;
  // mine [n bytes] → all [size · n bytes], in rank order.
  virtual tensor::Pending all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Root's bytes on every rank.
  virtual tensor::Pending broadcast(std::span<std::byte> bytes, int root) = 0;
  // out [size · n bytes] → in [size · n bytes]: piece r of `out` goes to rank r.
  virtual tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in) = 0;
  // Pieces of any length, side by side in the order of the ranks: that from rank f to rank t has bytes[f · size + t]
  // bytes, [size · size] numbers that are equal on all ranks.
  virtual tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                                     std::span<const size_t> bytes) = 0;
  // A matched pair; sizes must be equal.
  virtual void send(std::span<const std::byte> bytes, int to) = 0;
  virtual void receive(std::span<std::byte> bytes, int from) = 0;
  virtual void barrier() = 0;
  virtual void abort(const std::string& cause) = 0;
  // A sign of life from inside long work between collectives: ranks that wait for this one go on waiting. Cheap.
  virtual void beat() {}
};

struct GroupPlace {
  std::string name;   // equal on all ranks, unique in the run
  std::string store;  // address() of the back end's store; "" where it needs none
  int rank = 0;
  int size = 1;
  double deadline_seconds = 600.0;  // without a beat of any rank before a wait is an error
};

// Where the ranks of a run find each other. It is made, and kept until all have joined, by the process that starts
// them.
class GroupStore {
 public:
  virtual ~GroupStore() = default;
  virtual std::string address() const { return ""; }
};

// A kind of group: how its ranks reach each other. collimate/comm/back_ends.cpp lists those that there are.
struct BackEnd {
  std::string name;
  // Returns when all ranks have joined.
  std::unique_ptr<Group> (*join)(const GroupPlace& place) = nullptr;
  std::unique_ptr<GroupStore> (*open_store)() = std::make_unique<GroupStore>;
};
const std::vector<BackEnd>& back_ends();
// InputError, which has the known names, for another one.
const BackEnd& back_end(const std::string& name);

// Where the pieces of an uneven all_to_all lie.
struct PieceTable {
  std::span<const size_t> bytes;  // [size · size]
  size_t size = 0;
  size_t at(size_t from, size_t to) const { return bytes[from * size + to]; }
  size_t out_bytes(size_t rank) const;             // of all that a rank gives
  size_t in_bytes(size_t rank) const;              // of all that it gets
  size_t out_begin(size_t from, size_t to) const;  // in what `from` gives
  size_t in_begin(size_t from, size_t to) const;   // in what `to` gets
  size_t longest() const;
};

// A sum of at most so many floats is made whole by every rank, in place of a second meeting.
inline constexpr size_t kSmallFloats = 512;

// Σ over rows of parts[r][i] by the tree above, for i in [begin, end): the one place that knows the order. `out` may be
// where one of the parts begins.
void tree_sum(std::span<const float* const> parts, size_t begin, size_t end, float* out);
// The maximum over rows, likewise.
void max_over(std::span<const float* const> parts, size_t begin, size_t end, float* out);

// Σ of the ranks' values in their order, on every rank: of numbers that all_reduce does not take.
double sum_in_order(Group& group, double value, double deadline_seconds);
uint64_t sum_in_order(Group& group, uint64_t value, double deadline_seconds);

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <class T>
std::span<std::byte> writable_bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span(values));
}

}  // namespace collimate::comm

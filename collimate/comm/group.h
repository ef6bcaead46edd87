#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/tensor/pending.h"

namespace collimate::comm {

// An AbortedByPeer is thrown when a wait ends because another rank aborted the group; it has that rank's cause. The
// rank that found the cause itself, or whose deadline expired first, gets a plain RunError.
class AbortedByPeer : public base::RunError {
 public:
  using base::RunError::RunError;
};

// A Group has the collectives over an ordered set of ranks. Each rank has an object of its own, which only that rank's
// thread uses (any thread may call abort). Every rank calls the same collectives in the same order with the same sizes.
// A collective that returns a Pending is done when the Pending is finished and owns its buffers until then; back ends
// on the CPU return it finished. Waits have a deadline. When it expires, the group is aborted with a cause that says
// which ranks were waited for; sizes that differ abort it too. After an abort every waiting and later call on any rank
// throws RunError with the cause, once no other rank reads the caller's buffers.
//
// Sums are fp32 by a balanced binary tree over the rank index: with mid = (lo + hi) / 2 it is sum(lo, hi) = sum(lo,
// mid) + sum(mid, hi). All back ends use this order, so their results are equal bit by bit.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // Replaces values [n] by their sum over ranks, on every rank.
  virtual tensor::Pending all_reduce(std::span<float> values) = 0;
  // Replaces values [n] by their maximum over ranks, on every rank.
  virtual tensor::Pending all_reduce_max(std::span<float> values) = 0;
  // Sums all [size · n] over ranks and puts this rank's piece of the sum into mine [n]. Here and in all_gather `mine`
  // may be this rank's piece of `all` itself.
  virtual tensor::Pending reduce_scatter(std::span<const float> all, std::span<float> mine) = 0;
  // Puts mine [n bytes] of every rank into all [size · n bytes], in rank order.
  virtual tensor::Pending all_gather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  // Copies root's bytes to every rank.
  virtual tensor::Pending broadcast(std::span<std::byte> bytes, int root) = 0;
  // Sends piece r of out [size · n bytes] to rank r; in [size · n bytes] gets the pieces of all ranks in rank order.
  virtual tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in) = 0;
  // Exchanges pieces of any length, which lie side by side in rank order: `bytes` [size · size], equal on all ranks,
  // has the length of the piece from rank f to rank t at [f · size + t].
  virtual tensor::Pending all_to_all(std::span<const std::byte> out, std::span<std::byte> in,
                                     std::span<const size_t> bytes) = 0;
  // Each send matches a receive of the other rank; their sizes must be equal.
  virtual void send(std::span<const std::byte> bytes, int to) = 0;
  virtual void receive(std::span<std::byte> bytes, int from) = 0;
  virtual void barrier() = 0;
  virtual void abort(const std::string& cause) = 0;
  // Gives a sign of life from inside long work between collectives, so that ranks that wait for this one go on waiting.
  // It is cheap.
  virtual void beat() {}
};

struct GroupPlace {
  std::string name;   // equal on all ranks, unique in the run
  std::string store;  // address() of the back end's store; "" where it needs none
  int rank = 0;
  int size = 1;
  double deadline_seconds = 600.0;  // how long a wait may last without a beat of any rank before it is an error
};

// A GroupStore is where the ranks of a run find each other. The process that starts them makes it and keeps it until
// all have joined.
class GroupStore {
 public:
  virtual ~GroupStore() = default;
  virtual std::string address() const { return ""; }
};

// A BackEnd is a kind of group: how its ranks reach each other. collimate/comm/back_ends.cpp lists all kinds.
struct BackEnd {
  std::string name;
  // Returns when all ranks have joined.
  std::unique_ptr<Group> (*join)(const GroupPlace& place) = nullptr;
  std::unique_ptr<GroupStore> (*open_store)() = std::make_unique<GroupStore>;
};
const std::vector<BackEnd>& back_ends();
// Returns the back end of that name. Throws InputError with the known names for another one.
const BackEnd& back_end(const std::string& name);

// A PieceTable says where the pieces of an uneven all_to_all lie. All results are bytes.
struct PieceTable {
  std::span<const size_t> bytes;  // [size · size]
  size_t size = 0;
  size_t at(size_t from, size_t to) const { return bytes[from * size + to]; }
  size_t out_bytes(size_t rank) const;             // of all pieces that a rank sends
  size_t in_bytes(size_t rank) const;              // of all pieces that it receives
  size_t out_begin(size_t from, size_t to) const;  // in the `out` of `from`
  size_t in_begin(size_t from, size_t to) const;   // in the `in` of `to`
  size_t longest() const;
};

// Up to this many floats every rank computes the whole sum itself, which saves a second exchange.
inline constexpr size_t kSmallFloats = 512;

// Computes Σ over rows of parts[r][i] by the tree above, for i in [begin, end), into out[0 …]. No other code knows
// this order. `out` may be where one of the parts begins.
void tree_sum(std::span<const float* const> parts, size_t begin, size_t end, float* out);
// Computes the maximum over rows in the same way.
void max_over(std::span<const float* const> parts, size_t begin, size_t end, float* out);

// These return on every rank the sum of the ranks' values in rank order, for types that all_reduce does not take.
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

#pragma once

#include <cstdint>
#include <vector>

#include "collimate/base/immovable.h"

namespace collimate::generate {

class BlockPool;

// One block of the key-value cache, as a counted reference: copies share the block, and the last one to go gives it
// back to the pool. A prefix is shared by copying a vector of blocks. A block must not outlive its pool.
class Block {
 public:
  Block(const Block& other);
  Block(Block&& other) noexcept : pool_(other.pool_), id_(other.id_) { other.pool_ = nullptr; }
  Block& operator=(Block other) noexcept;
  ~Block();

  int32_t id() const { return id_; }
  // Gives the block back early. The id stays, and copies made later hold nothing.
  void release() { *this = Block(nullptr, id_); }

 private:
  friend class BlockPool;
  Block(BlockPool* pool, int32_t id) : pool_(pool), id_(id) {}

  BlockPool* pool_;
  int32_t id_;
};

// Hands out the ids of a cache of fixed size. A block without holders is free but keeps its content until it is
// allocated again, which happens in the order in which blocks became free; so a prefix cache may remember blocks
// without holding them. Every operation is O(1). Not thread-safe. The destructor checks that every block came home.
class BlockPool : private base::Immovable {
 public:
  explicit BlockPool(int64_t blocks);
  ~BlockPool();

  int64_t size() const { return static_cast<int64_t>(states_.size()) - 1; }
  int64_t free() const { return free_; }
  int64_t used() const { return size() - free_; }
  int64_t peak() const { return peak_; }  // most blocks ever used at once

  // Returns the block that has been free longest, with undefined content. There must be one: ask free() first.
  Block allocate();
  // Returns another holder of block `id`, whether it is free or not; its content stays.
  Block acquire(int32_t id);

  int32_t holders(int32_t id) const { return states_[id].holders; }
  // Returns a number that changes whenever the block is allocated, hence whenever its content may change.
  uint64_t generation(int32_t id) const { return states_[id].generation; }

 private:
  friend class Block;
  // The free blocks form a doubly linked ring through the sentinel, which is the last state.
  struct State {
    int32_t previous = 0;
    int32_t next = 0;
    int32_t holders = 0;
    uint64_t generation = 0;
  };

  void retain(int32_t id) { ++states_[id].holders; }
  void release(int32_t id);
  void take_from_ring(int32_t id);
  int32_t sentinel() const { return static_cast<int32_t>(states_.size()) - 1; }

  std::vector<State> states_;
  int64_t free_ = 0;
  int64_t peak_ = 0;
};

}  // namespace collimate::generate

#include "collimate/generate/block_pool.h"

#include <algorithm>
#include <utility>

#include "collimate/base/error.h"

namespace collimate::generate {

Block::Block(const Block& other) : pool_(other.pool_), id_(other.id_) {
  if (pool_ != nullptr) pool_->retain(id_);
}

Block& Block::operator=(Block other) noexcept {
  std::swap(pool_, other.pool_);
  std::swap(id_, other.id_);
  return *this;
}

Block::~Block() {
  if (pool_ != nullptr) pool_->release(id_);
}

BlockPool::BlockPool(int64_t blocks) : states_(blocks + 1), free_(blocks) {
  COLLIMATE_CHECK(blocks >= 1, "a pool of {} blocks", blocks);
  const auto count = static_cast<int32_t>(states_.size());
  for (int32_t id = 0; id < count; ++id) {
    states_[id].next = (id + 1) % count;
    states_[id].previous = (id + count - 1) % count;
  }
}

BlockPool::~BlockPool() { COLLIMATE_CHECK(used() == 0, "{} of {} cache blocks leaked", used(), size()); }

Block BlockPool::allocate() {
  COLLIMATE_CHECK(free_ > 0, "all {} cache blocks are in use", size());
  const int32_t id = states_[sentinel()].next;
  take_from_ring(id);
  ++states_[id].generation;
  return Block(this, id);
}

Block BlockPool::acquire(int32_t id) {
  COLLIMATE_CHECK(id >= 0 && id < size(), "block {} of {}", id, size());
  if (states_[id].holders == 0) {
    take_from_ring(id);
  } else {
    retain(id);
  }
  return Block(this, id);
}

void BlockPool::release(int32_t id) {
  if (--states_[id].holders > 0) return;
  State& end = states_[sentinel()];
  states_[id].previous = end.previous;
  states_[id].next = sentinel();
  states_[end.previous].next = id;
  end.previous = id;
  ++free_;
}

void BlockPool::take_from_ring(int32_t id) {
  State& state = states_[id];
  states_[state.previous].next = state.next;
  states_[state.next].previous = state.previous;
  state.holders = 1;
  --free_;
  peak_ = std::max(peak_, used());
}

}  // namespace collimate::generate

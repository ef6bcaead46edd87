#include "collimate/flow/lockstep.h"

#include "collimate/base/error.h"

namespace collimate::flow {

Lockstep::Lockstep(std::unique_ptr<Stream> stream, Ranks ranks)
    : stream_(std::move(stream)), ranks_(std::move(ranks)) {}

void Lockstep::feed(const Batch& rows) {
  requests_.emplace_back([rows](Stream& stream) { stream.feed(rows); });
}
void Lockstep::close() {
  requests_.emplace_back([](Stream& stream) { stream.close(); });
}
void Lockstep::pause() {
  requests_.emplace_back([](Stream& stream) { stream.pause(); });
}
void Lockstep::resume() {
  requests_.emplace_back([](Stream& stream) { stream.resume(); });
}

bool Lockstep::step() {
  if (!behind() && !more_) return false;
  const Agreed agreed = agree();
  if (agreed.ends) {
    ended_ = true;
    more_ = false;
    return true;
  }
  for (size_t i = 0; i < agreed.requests; ++i) {
    requests_.front()(*stream_);
    requests_.pop_front();
  }
  more_ = stream_->step();
  return more_ || behind();
}

// Agrees with the other ranks. All have carried out the same requests, so the smallest number left is what all of them
// have.
Lockstep::Agreed Lockstep::agree() const {
  std::vector<float> most = {-static_cast<float>(requests_.size()), ending_ ? 1.0F : 0.0F};
  for (comm::Group* line : ranks_.lines) line->all_reduce_max(most).wait(ranks_.deadline_seconds);
  return {static_cast<size_t>(-most[0]), most[1] > 0.0F};
}

}  // namespace collimate::flow

// This file gathers and releases segments that ranks share (stage 3 of ZeRO): they are whole while somebody holds them.
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/weights_impl.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {

using tensor::Buffer;

Weights::Held::Held(Held&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)), segment_(other.segment_) {}

Weights::Held& Weights::Held::operator=(Held&& other) noexcept {
  std::swap(impl_, other.impl_);
  std::swap(segment_, other.segment_);
  return *this;
}

Weights::Held::~Held() {
  if (impl_ != nullptr) impl_->let_go(segment_);
}

bool Weights::is_shared(int segment) const { return base::at(impl_->segments, segment).is_shared(); }

Weights::Held Weights::hold(int segment) const {
  if (!is_shared(segment)) return {};
  impl_->gather(segment);
  return {impl_.get(), segment};
}

std::array<Weights::Held, 2> Weights::hold_for_pass(int segment) const {
  const int experts = expert_segment(segment);
  std::array<Held, 2> held = {hold(segment), Held()};
  if (experts >= 0) held[1] = hold(experts);
  return held;
}

std::vector<Weights::Held> Weights::hold_for_inference() const {
  std::vector<Held> held;
  for (int s = 0; s < segments(); ++s) {
    held.push_back(hold(s));
    if (is_shared(s)) impl_->shrink(s);
  }
  return held;
}

void Weights::Impl::gather(int number) {
  Segment& s = segment(number);
  if (s.holders == 0) {
    const auto tagged = scope("gathered");
    s.gathered = Buffer(s.floats * static_cast<int64_t>(sizeof(float)), *exec.device);
    tensor::copy(exec, s.master->floats(), s.kept.count(), s.gathered.floats() + s.kept.begin);
    const tensor::HostEdit all(exec, s.gathered.floats(), s.floats);
    shares_of(number).gather(all.span());
  }
  ++s.holders;
}

// Reduces a held segment to its panels and the values that are in no panel.
void Weights::Impl::shrink(int number) {
  Segment& s = base::at(segments, number);
  if (s.small_alone || s.holders > 1) return;
  const auto tagged = scope("gathered");
  Buffer small(s.small * static_cast<int64_t>(sizeof(float)), *exec.device);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].segment != number || specs[i].absent()) continue;
    if (has_panels(i) && !packed[i].ready) pack(static_cast<int>(i), packed[i]);
    if (has_factors(i) && packed[i].factors_version != version) make_factors(static_cast<int>(i), packed[i]);
    if (small_at[i] >= 0)
      tensor::copy(exec, values_at(static_cast<int>(i)), specs[i].count(), small.floats() + small_at[i]);
  }
  s.gathered = std::move(small);
  s.small_alone = true;
}

void Weights::Impl::let_go(int number) {
  Segment& s = base::at(segments, number);
  if (--s.holders > 0) return;
  s.gathered = Buffer();
  s.small_alone = false;
  drop_panels(number);
}

}  // namespace collimate::model

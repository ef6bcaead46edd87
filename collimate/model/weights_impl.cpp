#include "collimate/model/weights_impl.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {

using shape::ParamSpec;
using tensor::Buffer;

bool is_of_base(const WeightsOptions& options, const std::vector<ParamSpec>& specs, int segment) {
  if (options.based == Based::kNo) return false;
  return std::ranges::none_of(specs, [&](const ParamSpec& spec) {
    if (spec.segment != segment) return false;
    const bool of_head = spec.part == shape::Part::kHead || spec.part == shape::Part::kScore;
    return is_adapter(spec) || (of_head && options.based == Based::kButHead) ||
           (options.lora.on() && is_changed_by_training(options.lora, spec));
  });
}

Weights::Impl::Segment& Weights::Impl::segment(int number) {
  COLLIMATE_CHECK(number >= 0 && number < static_cast<int>(segments.size()), "segment {}", number);
  check_resident();
  check_in_memory("segment " + std::to_string(number));
  return base::at(segments, number);
}

void Weights::Impl::check_in_memory(const std::string& what) const {
  if (mapped != nullptr)
    throw base::GuardError(base::expectation("weights of " + options.tag, "values in memory for " + what,
                                             "a model mapped from its files", "loading it without `mapped`"));
}

void Weights::Impl::check_resident() const {
  if (!resident)
    throw base::GuardError(
        base::expectation("weights of " + options.tag, "them on the device", "offloaded ones", "restoring them first"));
}

void Weights::Impl::lay_out() {
  whole_specs = model_params(whole_shape, options.lora);
  specs = shape::local(whole_specs, whole_shape, options.ranks.place());
  std::vector<int64_t> floats = shape::segment_floats(specs);
  // If the head is the embedding and no norm is ahead of it, the last segment has no parameters but still exists.
  floats.resize(std::max(floats.size(), static_cast<size_t>(whole_shape.layers()) + 2));
  for (const int64_t count : floats) {
    Segment& s = segments.emplace_back();
    s.floats = s.kept.end = count;
  }
  first_of_experts = static_cast<int>(segments.size());
  if (options.ranks.experts.several()) first_of_experts = shape::first_expert_segment(whole_specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    Segment& s = base::at(segments, specs[i].segment);
    index[specs[i].name] = static_cast<int>(i);
    if (!is_adapter(specs[i])) own = i + 1, s.kept = shares_of(specs[i].segment).kept(s.floats);
    changes.push_back(!specs[i].absent() && is_changed_by_training(options.lora, specs[i]));
    if (changes[i]) s.changes = true;
  }
  for (size_t s = 0; s < segments.size(); ++s) {
    segments[s].is_of_base = is_of_base(options, specs, static_cast<int>(s));
    if (segments[s].is_of_base) segments[s].changes = false;
  }
  packed.resize(specs.size());
  small_at.resize(specs.size(), 0);
  for (size_t i = 0; i < specs.size(); ++i)
    if (has_panels(i) && specs[i].kind != shape::ParamKind::kEmbedding)
      std::fill_n(small_at.begin() + static_cast<int64_t>(i), specs[i].fused, -1);
  for (size_t i = 0; i < specs.size(); ++i)
    if (small_at[i] == 0)
      small_at[i] = std::exchange(base::at(segments, specs[i].segment).small,
                                  base::at(segments, specs[i].segment).small + specs[i].count());
}

void Weights::Impl::take_base() {
  if (options.base != nullptr) below()->check_resident();
  for (size_t s = 0; s < segments.size(); ++s) {
    if (!segments[s].is_of_base) continue;
    COLLIMATE_CHECK(options.base != nullptr && !options.ranks.shares.several() && !options.ranks.experts.several(),
                    "{}", options.tag);
    const Impl& from = *below();
    for (size_t i = 0; i < specs.size(); ++i)
      COLLIMATE_CHECK(specs[i].segment != static_cast<int>(s) ||
                          (i < from.specs.size() && from.specs[i].name == specs[i].name &&
                           from.specs[i].sizes == specs[i].sizes && from.specs[i].offset == specs[i].offset),
                      "{} of {} is none of {}", specs[i].name, options.tag, from.options.tag);
    segments[s].master = base::at(from.segments, static_cast<int>(s)).master;
  }
  if (options.base != nullptr) ++below()->over;  // when nothing can fail any more: the destructor takes it back
}

bool Weights::Impl::has_panels(size_t index) const {
  const ParamSpec& spec = specs[index];
  return spec.fused > 0 && !spec.absent() && shape::is_linear(shape, spec);
}

float* Weights::Impl::values_at(int index) const {
  const ParamSpec& spec = base::at(specs, index);
  const Segment& s = base::at(segments, spec.segment);
  if (!s.is_shared()) return s.master->floats() + spec.offset;
  const int64_t small = base::at(small_at, index);
  if (s.holders == 0 || (s.small_alone && small < 0))
    throw base::GuardError(base::expectation(spec.name + " of " + options.tag,
                                             "its segment held, for a pass that reads it",
                                             "this rank's share of it alone", "Weights::hold"));
  return s.gathered.floats() + (s.small_alone ? small : spec.offset);
}

float* Weights::Impl::whole_segment(int number) {
  Segment& s = segment(number);
  if (!s.is_shared()) return s.master->floats();
  if (s.holders == 0 || s.small_alone)
    throw base::GuardError(base::expectation(fmt::format("segment {} of {}", number, options.tag), "it held",
                                             "this rank's share of it alone", "Weights::hold"));
  return s.gathered.floats();
}

Weights::Impl::KeptRange Weights::Impl::kept_of(int index) const {
  const ParamSpec& spec = base::at(specs, index);
  const Segment& s = base::at(segments, spec.segment);
  const int64_t begin = std::max(spec.offset, s.kept.begin), end = std::min(spec.offset + spec.count(), s.kept.end);
  if (begin >= end) return {};
  return {begin - spec.offset, end - spec.offset, s.master->floats() + (begin - s.kept.begin)};
}

std::vector<float> Weights::Impl::kept_numbers(int index) const {
  std::vector<float> numbers(static_cast<size_t>(spec(index).count()));
  const KeptRange kept = kept_of(index);
  if (kept.count() > 0)
    tensor::copy_out(exec, kept.values, kept.count() * static_cast<int64_t>(sizeof(float)),
                     numbers.data() + kept.begin);
  return numbers;
}

void Weights::Impl::pack(int first, Packed& target) {
  const ParamSpec& spec = base::at(specs, first);
  const int64_t rows = shape::fused_rows(specs, first), columns = spec.sizes[1];
  const ComputeType compute = compute_of(options, spec);
  const int chunks = chunks_of(options, spec);
  const int64_t bytes = tensor::packed_bytes(exec, rows, columns, compute, chunks);
  if (target.memory.bytes() < bytes) {
    const auto tagged = scope("panels");
    target.memory = Buffer(bytes, *exec.device);
  }
  target.panels.reset(exec, rows, columns, compute, chunks, target.memory.data());
  if (mapped != nullptr) {
    mapped->pack(exec, static_cast<size_t>(first), target.panels);
  } else {
    tensor::pack_linear_rows(exec, values_at(first), 0, rows, target.panels);
  }
  target.panels.version = version;
  target.fingerprint = fingerprint(first);
  target.ready = true;
}

// Returns a hash of a sample of every parameter of a linear layer, enough to notice an update that nobody committed. It
// is 0 for a mapped model and for a shared segment, as nothing changes the values that their panels are of.
uint64_t Weights::Impl::fingerprint(int first) const {
  if (mapped != nullptr || base::at(segments, spec(first).segment).is_shared()) return 0;
  uint64_t sum = 0;
  for (int i = first; i < first + base::at(specs, first).fused; ++i)
    sum = base::mix(sum, tensor::fingerprint(exec, values_at(i), base::at(specs, i).count()));
  return sum;
}

void Weights::Impl::drop_panels(int segment) {
  for (size_t i = 0; i < packed.size(); ++i) {
    if (segment >= 0 && specs[i].segment != segment) continue;
    packed[i].memory = Buffer();
    packed[i].ready = false;
    packed[i].factors = Buffer();
    packed[i].factors_version = 0;
  }
}

Buffer Weights::Impl::zeros(int64_t floats, const char* purpose) const {
  const auto tagged = scope(purpose);
  Buffer made(floats * static_cast<int64_t>(sizeof(float)), *exec.device);
  tensor::zero(exec, floats, made.floats());
  return made;
}

}  // namespace collimate::model

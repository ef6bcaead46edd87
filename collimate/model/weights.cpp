#include "collimate/model/weights.h"

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/segment_parts.h"
#include "collimate/model/weights_impl.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/ops/embedding.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::model {
namespace {

using shape::ParamSpec;
using tensor::Buffer;

void add_item(std::vector<MemoryItem>& items, const std::string& purpose, int64_t bytes) {
  auto found = std::ranges::find(items, purpose, &MemoryItem::purpose);
  if (found == items.end()) found = items.insert(found, {purpose, 0});
  found->bytes += bytes;
}

}  // namespace

Weights::Weights(shape::ModelShape shape, WeightsOptions options, tensor::Exec exec,
                 std::shared_ptr<MappedValues> values)
    : impl_(std::make_unique<Impl>()) {
  const bool changes = options.trained || options.lora.on() || options.ranks.several();
  COLLIMATE_CHECK(options.mapped == (values != nullptr) && !(options.mapped && changes), "{}", options.tag);
  if (options.trained && options.compute == tensor::ComputeType::kInt8)
    throw base::InputError(base::expectation("weights of " + options.tag, "float32 or bfloat16 to train",
                                             std::string(name_of(options.compute))));
  if (options.ranks.tensor.several() && options.compute == tensor::ComputeType::kInt8)
    throw base::InputError(base::expectation(
        "weights of " + options.tag, "tp 1 with compute int8, which rounds each row of a matrix by its largest value",
        fmt::format("tp {}", options.ranks.tensor.place.ranks), "tp 1, or compute: bfloat16"));
  if (options.ranks.tensor.several() && options.lora.dora)
    throw base::InputError(base::expectation(
        "weights of " + options.tag, "tp 1 with lora.dora, which takes the lengths of whole rows of matrices",
        fmt::format("tp {}", options.ranks.tensor.place.ranks), "tp 1, or dora: false"));
  impl_->shape = shape::local_shape(shape, options.ranks.place(), "weights of " + options.tag);
  impl_->whole_shape = std::move(shape);
  impl_->options = std::move(options);
  impl_->exec = exec;
  impl_->lay_out();
  if (values == nullptr) {
    for (Impl::Segment& s : impl_->segments)
      if (!s.is_of_base) *s.master = impl_->zeros(s.kept.count(), impl_->values_purpose(s));
    impl_->take_base();  // last, as from then on the base counts these weights until they are gone
    return;
  }
  const auto tagged = impl_->scope(model::values_purpose(false));
  impl_->mapped = std::move(values);
  impl_->mapped->load_small(impl_->exec, impl_->shape);
}

Weights::~Weights() {
  if (Impl* below = impl_->below(); below != nullptr && impl_->resident) --below->over;
}

const shape::ModelShape& Weights::shape() const { return impl_->shape; }
const shape::ModelShape& Weights::whole_shape() const { return impl_->whole_shape; }
const WeightsOptions& Weights::options() const { return impl_->options; }
int Weights::first_of_experts() const { return impl_->first_of_experts; }
int Weights::segments() const { return static_cast<int>(impl_->segments.size()); }
const std::vector<ParamSpec>& Weights::params() const { return impl_->specs; }
const std::vector<ParamSpec>& Weights::whole_params() const { return impl_->whole_specs; }
size_t Weights::own_params() const { return impl_->own; }

std::vector<int> Weights::changing_segments() const {
  std::vector<int> changing;
  for (int s = 0; s < segments(); ++s)
    if (base::at(impl_->segments, s).changes) changing.push_back(s);
  return changing;
}

int Weights::index_of(const std::string& name) const {
  const auto found = impl_->index.find(name);
  return found == impl_->index.end() ? -1 : found->second;
}

int Weights::index_of(shape::Part part, int segment, bool bias) const {
  for (size_t i = 0; i < impl_->own; ++i) {
    const ParamSpec& spec = impl_->specs[i];
    if (spec.part == part && spec.runs_in == segment && (spec.kind == shape::ParamKind::kBias) == bias)
      return static_cast<int>(i);
  }
  return -1;
}

std::span<float> Weights::segment_values(int segment) {
  return {impl_->whole_segment(segment), static_cast<size_t>(segment_floats(segment))};
}

int64_t Weights::segment_floats(int segment) const { return base::at(impl_->segments, segment).floats; }
const Share& Weights::kept(int segment) const { return base::at(impl_->segments, segment).kept; }

std::span<float> Weights::kept_values(int segment) {
  auto& s = impl_->segment(segment);
  return {s.master->floats(), static_cast<size_t>(s.kept.count())};
}

Weights::KeptValues Weights::kept_of(int index) {
  impl_->segment(impl_->spec(index).segment);
  const Impl::KeptRange kept = impl_->kept_of(index);
  return {kept.begin, {kept.values, static_cast<size_t>(kept.count())}};
}

bool Weights::trains(int index) const { return impl_->options.trained && base::at(impl_->changes, index); }
bool Weights::trains_segment(int segment) const { return impl_->trains(base::at(impl_->segments, segment)); }

std::span<float> Weights::segment_gradient(int segment) {
  auto& s = impl_->segment(segment);
  if (!impl_->trains(s)) return {};
  return {impl_->gradient(s), static_cast<size_t>(s.floats)};
}

Buffer Weights::take_gradient(int segment) {
  segment_gradient(segment);
  return std::move(impl_->segment(segment).gradient);
}

tensor::HostEdit Weights::master(int segment) { return {impl_->exec, segment_values(segment)}; }
tensor::HostEdit Weights::gradient(int segment) { return {impl_->exec, segment_gradient(segment)}; }

float* Weights::param(int index) {
  const ParamSpec& spec = impl_->spec(index);
  if (impl_->mapped != nullptr) {
    if (float* own = impl_->mapped->small(static_cast<size_t>(index)); own != nullptr) return own;
    impl_->check_in_memory(spec.name);
  }
  impl_->segment(spec.segment);
  return impl_->values_at(index);
}

float* Weights::param_gradient(int index) {
  if (!trains(index)) return nullptr;
  const ParamSpec& spec = impl_->spec(index);
  return impl_->gradient(impl_->segment(spec.segment)) + spec.offset;
}

tensor::HostRead Weights::values(int index) const {
  impl_->check_resident();
  const ParamSpec& spec = impl_->spec(index);
  impl_->check_in_memory(spec.name);
  return {impl_->exec, impl_->values_at(index), spec.count()};
}

tensor::HostRead Weights::gradient_of(int index) {
  const float* gradient = param_gradient(index);
  return {impl_->exec, gradient, gradient == nullptr ? 0 : impl_->spec(index).count()};
}

void Weights::read(int index, int64_t first, std::span<float> out) const {
  if (impl_->mapped != nullptr) return impl_->mapped->read(static_cast<size_t>(index), first, out);
  impl_->check_resident();
  const ParamSpec& spec = impl_->spec(index);
  tensor::copy_out(impl_->exec, impl_->values_at(index) + first * spec.sizes.back(),
                   static_cast<int64_t>(out.size_bytes()), out.data());
}

void Weights::look_up(int index, const RowIds& ids, float* out, bool accumulate) const {
  const ParamSpec& spec = impl_->spec(index);
  if (impl_->mapped != nullptr)
    return impl_->mapped->look_up(impl_->exec, static_cast<size_t>(index), ids.host, ids.first, out, accumulate);
  impl_->check_resident();
  tensor::embedding(impl_->exec, impl_->values_at(index) + ids.first * spec.sizes[1], spec.sizes[0] - ids.first,
                    spec.sizes[1], ids.device, static_cast<int64_t>(ids.host.size()), out, accumulate);
}

const tensor::LinearPanels& Weights::panels(int index) {
  const ParamSpec& spec = impl_->spec(index);
  COLLIMATE_CHECK(spec.sizes.size() == 2 && spec.fused > 0, "{} starts no linear layer", spec.name);
  impl_->check_resident();
  if (base::at(impl_->segments, spec.segment).is_of_base) return impl_->options.base->panels(index);
  auto& packed = base::at(impl_->packed, index);
  if (!packed.ready) impl_->pack(index, packed);
  if (packed.panels.version != impl_->version)
    throw base::GuardError(base::expectation("panels of " + spec.name, fmt::format("version {}", impl_->version),
                                             fmt::format("{}", packed.panels.version), "commit after every change"));
  if (packed.fingerprint != impl_->fingerprint(index))
    throw base::GuardError(base::expectation("panels of " + spec.name, "those of the current weights",
                                             "older ones of the same version", "commit after every change"));
  return packed.panels;
}

void Weights::pack_all() {
  for (size_t i = 0; i < impl_->specs.size(); ++i)
    if (impl_->has_panels(i)) panels(static_cast<int>(i));
}

uint64_t Weights::version() const { return impl_->version; }
void Weights::commit() { commit(impl_->version + 1); }

void Weights::commit(uint64_t version) {
  for (Impl::Segment& s : impl_->segments) {
    COLLIMATE_CHECK(!s.is_shared() || !s.changes || s.holders == 0, "a segment of {} is held while it changes",
                    impl_->options.tag);
    if (s.changes && impl_->resident) s.away.current = false;  // values that are away cannot have changed
  }
  impl_->version = version;
  for (size_t i = 0; i < impl_->packed.size(); ++i) {
    Impl::Packed& packed = impl_->packed[i];
    packed.ready = packed.ready && !impl_->changes[i] && packed.fingerprint == impl_->fingerprint(static_cast<int>(i));
    if (packed.ready) packed.panels.version = version;
    packed.factors_version = 0;
  }
}

void Weights::set_compute(ComputeType type) {
  COLLIMATE_CHECK(!impl_->options.trained && impl_->options.based == Based::kNo, "{} computes as it was made",
                  impl_->options.tag);
  impl_->options.compute = type;
  impl_->drop_panels(-1);
}

void Weights::zero_gradients() {
  for (auto& s : impl_->segments)
    if (s.gradient.data() != nullptr) tensor::zero(impl_->exec, s.floats, s.gradient.floats());
}

void Weights::offload(tensor::AwayFile& file) {
  impl_->check_resident();
  impl_->check_in_memory("another place");
  for (Impl::Segment& s : impl_->segments) {
    COLLIMATE_CHECK(s.holders == 0, "a segment of {} is held", impl_->options.tag);
    if (!s.is_of_base) file.put(impl_->exec, s.away, *s.master);
  }
  for (Impl::Packed& packed : impl_->packed) packed.memory.discard(), packed.factors.discard();
  impl_->drop_panels(-1);
  impl_->resident = false;
  if (Impl* below = impl_->below(); below != nullptr && --below->over == 0) impl_->options.base->offload(file);
}

void Weights::restore(tensor::AwayFile& file) {
  COLLIMATE_CHECK(!impl_->resident, "restore without offload");
  if (Impl* below = impl_->below(); below != nullptr && below->over++ == 0) impl_->options.base->restore(file);
  for (Impl::Segment& s : impl_->segments) {
    if (s.is_of_base) continue;
    const auto tagged = impl_->scope(impl_->values_purpose(s));
    file.bring(impl_->exec, s.away, *s.master);
  }
  impl_->resident = true;
}

bool Weights::resident() const { return impl_->resident; }

void Weights::drop_gradients() {
  for (Impl::Segment& s : impl_->segments) s.gradient.discard();
}

std::vector<MemoryItem> Weights::memory() const {
  std::vector<MemoryItem> items;
  for (const auto& s : impl_->segments) {
    if (s.is_of_base) continue;
    add_item(items, impl_->values_purpose(s), s.master->bytes());
    if (s.gradient.data() != nullptr) add_item(items, "gradient", s.gradient.bytes());
    if (s.gathered.data() != nullptr) add_item(items, "gathered", s.gathered.bytes());
  }
  if (impl_->mapped != nullptr) add_item(items, model::values_purpose(false), impl_->mapped->small_bytes());
  for (const auto& packed : impl_->packed) {
    if (packed.memory.data() != nullptr) add_item(items, "panels", packed.memory.bytes());
    if (packed.factors.data() != nullptr) add_item(items, "factors", packed.factors.bytes());
  }
  return items;
}

void Weights::save(base::StateWriter& out, std::span<const Share> shares) const {
  impl_->check_resident();
  impl_->check_in_memory("a checkpoint");
  out.json("version", impl_->version);
  out.json("compute", name_of(impl_->options.compute));
  for (const int i : changing_segments()) {
    const auto& s = base::at(impl_->segments, i);
    const Share share = shares.empty() ? s.kept : base::at(shares, i);
    if (share.count() == 0) continue;
    COLLIMATE_CHECK(share.begin >= s.kept.begin && share.end <= s.kept.end, "segment {}", i);
    const tensor::HostRead values(impl_->exec, s.master->floats() + (share.begin - s.kept.begin), share.count());
    out.tensors("weights", i, parts_of(impl_->specs, i, share), values.span());
  }
}

void Weights::load(base::StateReader& in) {
  if (const auto saved = in.json("compute").get<std::string>(); saved != name_of(impl_->options.compute))
    throw base::InputError(base::expectation("weights of " + impl_->options.tag, "those of compute " + saved,
                                             std::string(name_of(impl_->options.compute)),
                                             "compute: " + saved + " to continue with the same bits"));
  for (const int i : changing_segments()) {
    const tensor::HostEdit kept_here(impl_->exec, kept_values(i));
    in.tensors("weights", parts_of(impl_->specs, i, kept(i)), kept_here.span());
  }
  commit(in.json("version").get<uint64_t>());
}

}  // namespace collimate::model

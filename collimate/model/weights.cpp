#include "collimate/model/weights.h"

#include <algorithm>
#include <unordered_map>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/model/segment_parts.h"
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

struct Weights::Impl {
  struct Segment {
    int64_t floats = 0;
    bool changes = false;  // in training
    Buffer master, gradient;
  };
  struct Packed {
    tensor::LinearPanels panels;
    Buffer memory;
    bool ready = false;
    uint64_t fingerprint = 0;  // of the values they were packed from
  };

  shape::ModelShape shape, whole_shape;
  WeightsOptions options;
  tensor::Exec exec;
  std::vector<ParamSpec> specs, whole_specs;
  std::vector<bool> changes;  // by parameter: in training
  size_t own = 0;             // parameters that are none of adapters
  int first_of_experts = 0;   // segments where ranks share none
  std::unordered_map<std::string, int> index;
  std::vector<Segment> segments;
  std::vector<Packed> packed;  // one per parameter, empty where it is no linear layer
  std::vector<Buffer> away;    // the masters of an offloaded model
  std::shared_ptr<MappedValues> mapped;
  uint64_t version = 1;
  bool resident = true;

  const ParamSpec& spec(int index) const { return specs.at(static_cast<size_t>(index)); }
  tensor::MemoryScope scope(const char* purpose) const { return tensor::MemoryScope(options.tag + "/" + purpose); }
  bool trains(const Segment& s) const { return options.trained && s.changes; }
  const char* values_purpose(const Segment& s) const { return model::values_purpose(trains(s)); }
  float* gradient(Segment& s) {
    if (s.gradient.data() == nullptr) s.gradient = zeros(s.floats, "gradient");
    return s.gradient.floats();
  }

  Segment& segment(int number) {
    COLLIMATE_CHECK(number >= 0 && number < static_cast<int>(segments.size()), "segment {}", number);
    check_resident();
    check_in_memory("segment " + std::to_string(number));
    return base::at(segments, number);
  }
  void check_in_memory(const std::string& what) const {
    if (mapped != nullptr)
      throw base::GuardError(base::expectation("weights of " + options.tag, "values in memory for " + what,
                                               "a model mapped from its files", "loading it without `mapped`"));
  }
  void check_resident() const {
    if (!resident)
      throw base::GuardError(base::expectation("weights of " + options.tag, "them on the device", "offloaded ones",
                                               "restoring them first"));
  }

  // Everything but memory, by shape and options.
  void lay_out() {
    whole_specs = model_params(whole_shape, options.lora);
    specs = shape::local(whole_specs, whole_shape, options.ranks().place());
    for (const int64_t floats : shape::segment_floats(specs)) segments.emplace_back().floats = floats;
    for (size_t i = 0; i < specs.size(); ++i) {
      index[specs[i].name] = static_cast<int>(i);
      if (!is_adapter(specs[i])) own = i + 1;
      changes.push_back(!specs[i].absent() && is_changed_by_training(options.lora, specs[i]));
      if (changes[i]) base::at(segments, specs[i].segment).changes = true;
    }
    packed.resize(specs.size());
    first_of_experts = static_cast<int>(segments.size());
    if (options.experts.several()) first_of_experts = shape::first_expert_segment(whole_specs);
  }

  void pack(int first, Packed& target) {
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
      const float* from = segment(spec.segment).master.floats() + spec.offset;
      tensor::pack_linear_rows(exec, from, 0, rows, target.panels);
    }
    target.panels.version = version;
    target.fingerprint = fingerprint(first);
    target.ready = true;
  }

  // A sample of every parameter of a linear layer: enough to notice an update that nobody committed.
  uint64_t fingerprint(int first) const {
    if (mapped != nullptr) return 0;  // nothing can change them
    uint64_t sum = 0;
    for (int i = first; i < first + base::at(specs, first).fused; ++i)
      sum = base::mix(sum, tensor::fingerprint(exec, values_of(base::at(specs, i)), base::at(specs, i).count()));
    return sum;
  }
  const float* values_of(const ParamSpec& spec) const {
    return base::at(segments, spec.segment).master.floats() + spec.offset;
  }

  Buffer zeros(int64_t floats, const char* purpose) const {
    const auto tagged = scope(purpose);
    Buffer made(floats * static_cast<int64_t>(sizeof(float)), *exec.device);
    tensor::zero(exec, floats, made.floats());
    return made;
  }
  Buffer copy_of(const Buffer& from) const {
    Buffer copy(from.bytes(), *exec.device);
    tensor::copy(exec, from.floats(), from.bytes() / static_cast<int64_t>(sizeof(float)), copy.floats());
    return copy;
  }
  void drop_panels() {
    for (Packed& p : packed) {
      p.memory = Buffer();
      p.ready = false;
    }
  }
};

Weights::Weights(shape::ModelShape shape, WeightsOptions options, tensor::Exec exec,
                 std::shared_ptr<MappedValues> values)
    : impl_(std::make_unique<Impl>()) {
  const bool changes = options.trained || options.lora.on() || options.ranks().several();
  COLLIMATE_CHECK(options.mapped == (values != nullptr) && !(options.mapped && changes), "{}", options.tag);
  if (options.trained && options.compute == tensor::ComputeType::kInt8)
    throw base::InputError(base::expectation("weights of " + options.tag, "float32 or bfloat16 to train",
                                             std::string(name_of(options.compute))));
  impl_->shape = shape::local_shape(shape, options.ranks().place(), "weights of " + options.tag);
  impl_->whole_shape = std::move(shape);
  impl_->options = std::move(options);
  impl_->exec = exec;
  impl_->lay_out();
  if (values == nullptr) {
    for (Impl::Segment& s : impl_->segments) s.master = impl_->zeros(s.floats, impl_->values_purpose(s));
    return;
  }
  const auto tagged = impl_->scope(model::values_purpose(false));
  impl_->mapped = std::move(values);
  impl_->mapped->load_small(impl_->exec, impl_->shape);
}

Weights::~Weights() = default;

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
  auto& s = impl_->segment(segment);
  return {s.master.floats(), static_cast<size_t>(s.floats)};
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
tensor::HostEdit Weights::edit(int index) { return {impl_->exec, param(index), impl_->spec(index).count()}; }

float* Weights::param(int index) {
  const ParamSpec& spec = impl_->spec(index);
  if (impl_->mapped != nullptr) {
    if (float* own = impl_->mapped->small(static_cast<size_t>(index)); own != nullptr) return own;
    impl_->check_in_memory(spec.name);
  }
  return impl_->segment(spec.segment).master.floats() + spec.offset;
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
  return {impl_->exec, impl_->values_of(spec), spec.count()};
}

tensor::HostRead Weights::gradient_of(int index) {
  const float* gradient = param_gradient(index);
  return {impl_->exec, gradient, gradient == nullptr ? 0 : impl_->spec(index).count()};
}

void Weights::read(int index, int64_t first, std::span<float> out) const {
  if (impl_->mapped != nullptr) return impl_->mapped->read(static_cast<size_t>(index), first, out);
  impl_->check_resident();
  const ParamSpec& spec = impl_->spec(index);
  tensor::copy_out(impl_->exec, impl_->values_of(spec) + first * spec.sizes.back(),
                   static_cast<int64_t>(out.size_bytes()), out.data());
}

void Weights::look_up(int index, const RowIds& ids, float* out, bool accumulate) const {
  const ParamSpec& spec = impl_->spec(index);
  if (impl_->mapped != nullptr)
    return impl_->mapped->look_up(impl_->exec, static_cast<size_t>(index), ids.host, ids.first, out, accumulate);
  impl_->check_resident();
  tensor::embedding(impl_->exec, impl_->values_of(spec) + ids.first * spec.sizes[1], spec.sizes[0] - ids.first,
                    spec.sizes[1], ids.device, static_cast<int64_t>(ids.host.size()), out, accumulate);
}

const tensor::LinearPanels& Weights::panels(int index) {
  const ParamSpec& spec = impl_->spec(index);
  COLLIMATE_CHECK(spec.sizes.size() == 2 && spec.fused > 0, "{} starts no linear layer", spec.name);
  impl_->check_resident();
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
    if (const ParamSpec& s = impl_->specs[i]; s.fused > 0 && !s.absent() && shape::is_linear(impl_->shape, s))
      panels(static_cast<int>(i));
}

uint64_t Weights::version() const { return impl_->version; }
void Weights::commit() { commit(impl_->version + 1); }

void Weights::commit(uint64_t version) {
  impl_->version = version;
  for (size_t i = 0; i < impl_->packed.size(); ++i) {
    Impl::Packed& packed = impl_->packed[i];
    packed.ready = packed.ready && !impl_->changes[i] && packed.fingerprint == impl_->fingerprint(static_cast<int>(i));
    if (packed.ready) packed.panels.version = version;
  }
}

void Weights::set_compute(ComputeType type) {
  COLLIMATE_CHECK(!impl_->options.trained, "{} is trained as it was made", impl_->options.tag);
  impl_->options.compute = type;
  impl_->drop_panels();
}

void Weights::zero_gradients() {
  for (auto& s : impl_->segments)
    if (s.gradient.data() != nullptr) tensor::zero(impl_->exec, s.floats, s.gradient.floats());
}

void Weights::relocate() {
  impl_->check_resident();
  impl_->check_in_memory("another place");
  for (auto& s : impl_->segments) {
    const auto values = impl_->scope(impl_->values_purpose(s));
    s.master = impl_->copy_of(s.master);
    const auto gradient = impl_->scope("gradient");
    s.gradient = impl_->copy_of(s.gradient);
  }
  for (auto& packed : impl_->packed) {
    if (packed.memory.data() == nullptr) continue;
    const auto tagged = impl_->scope("panels");
    Buffer moved = impl_->copy_of(packed.memory);
    if (packed.panels.scales != nullptr)
      packed.panels.scales = moved.floats() + (packed.panels.scales - packed.memory.floats());
    packed.memory = std::move(moved);
    packed.panels.data = packed.memory.data();
  }
}

void Weights::offload() {
  impl_->check_resident();
  impl_->check_in_memory("another place");
  const auto tagged = impl_->scope("offloaded");
  for (auto& s : impl_->segments) {
    impl_->away.push_back(impl_->copy_of(s.master));
    s.master = Buffer();
  }
  impl_->drop_panels();
  impl_->resident = false;
}

void Weights::restore() {
  COLLIMATE_CHECK(!impl_->resident, "restore without offload");
  for (size_t i = 0; i < impl_->segments.size(); ++i) {
    const auto tagged = impl_->scope(impl_->values_purpose(impl_->segments[i]));
    impl_->segments[i].master = impl_->copy_of(impl_->away[i]);
  }
  impl_->away.clear();
  impl_->resident = true;
}

std::vector<MemoryItem> Weights::memory() const {
  std::vector<MemoryItem> items;
  for (const auto& s : impl_->segments) {
    add_item(items, impl_->values_purpose(s), s.master.bytes());
    if (s.gradient.data() != nullptr) add_item(items, "gradient", s.gradient.bytes());
  }
  if (impl_->mapped != nullptr) add_item(items, model::values_purpose(false), impl_->mapped->small_bytes());
  for (const auto& packed : impl_->packed)
    if (packed.memory.data() != nullptr) add_item(items, "panels", packed.memory.bytes());
  for (const Buffer& buffer : impl_->away) add_item(items, "offloaded", buffer.bytes());
  return items;
}

void Weights::save(base::StateWriter& out, std::span<const Share> shares) const {
  impl_->check_resident();
  impl_->check_in_memory("a checkpoint");
  out.json("version", impl_->version);
  out.json("compute", name_of(impl_->options.compute));
  for (const int i : changing_segments()) {
    const auto& s = base::at(impl_->segments, i);
    const Share share = shares.empty() ? Share{.end = s.floats} : base::at(shares, i);
    if (share.count() == 0) continue;
    const tensor::HostRead values(impl_->exec, s.master.floats() + share.begin, share.count());
    out.tensors("weights", i, parts_of(impl_->specs, i, share), values.span());
  }
}

void Weights::load(base::StateReader& in) {
  if (const auto saved = in.json("compute").get<std::string>(); saved != name_of(impl_->options.compute))
    throw base::InputError(base::expectation("weights of " + impl_->options.tag, "those of compute " + saved,
                                             std::string(name_of(impl_->options.compute)),
                                             "compute: " + saved + " to continue with the same bits"));
  for (const int i : changing_segments())
    in.tensors("weights", parts_of(impl_->specs, i, {.end = base::at(impl_->segments, i).floats}), master(i).span());
  commit(in.json("version").get<uint64_t>());
}

}  // namespace collimate::model

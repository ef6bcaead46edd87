#include "collimate/model/weights.h"

#include <ATen/ops/from_blob.h>

#include <cstring>
#include <unordered_map>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"
#include "collimate/model/initialize.h"
#include "collimate/tensor/allocator.h"

namespace collimate::model {
namespace {

using shape::ParamSpec;
using tensor::Buffer;

int64_t float_bytes(int64_t count) { return count * static_cast<int64_t>(sizeof(float)); }

void add_item(std::vector<MemoryItem>& items, const std::string& purpose, int64_t bytes) {
  for (MemoryItem& item : items)
    if (item.purpose == purpose) {
      item.bytes += bytes;
      return;
    }
  items.push_back({purpose, bytes});
}

}  // namespace

struct Weights::Impl {
  struct Segment {
    int64_t floats = 0;
    Buffer master, gradient;
  };
  struct Packed {
    tensor::LinearPanels panels;
    Buffer memory;
    bool ready = false;
    uint64_t fingerprint = 0;  // of the values they were packed from
  };

  shape::ModelShape shape;
  WeightsOptions options;
  tensor::Exec exec;
  std::vector<ParamSpec> specs;
  std::unordered_map<std::string, int> index;
  std::vector<Segment> segments;
  std::vector<Packed> packed;  // one per parameter, empty where it is no linear layer
  std::vector<Buffer> away;    // the masters of an offloaded model
  uint64_t version = 1;
  bool resident = true;

  tensor::MemoryScope scope(const char* purpose) const { return tensor::MemoryScope(options.tag + "/" + purpose); }

  Segment& segment(int number) {
    COLLIMATE_CHECK(number >= 0 && number < static_cast<int>(segments.size()), "segment {}", number);
    check_resident();
    return segments[static_cast<size_t>(number)];
  }
  void check_resident() const {
    if (!resident)
      throw base::GuardError(base::expectation("weights of " + options.tag, "them on the device", "offloaded ones",
                                               "restoring them first"));
  }

  // Rows and columns of the linear layer that begins at a parameter, with those fused to it.
  std::pair<int64_t, int64_t> linear_sizes(int first) const {
    const auto begin = static_cast<size_t>(first);
    int64_t rows = 0;
    for (int i = 0; i < specs[begin].fused; ++i) rows += specs[begin + static_cast<size_t>(i)].sizes[0];
    return {rows, specs[begin].sizes[1]};
  }

  void pack(int first, Packed& target) {
    const ParamSpec& spec = specs[static_cast<size_t>(first)];
    const auto [rows, columns] = linear_sizes(first);
    const int64_t bytes = tensor::LinearPanels::bytes_for(rows, columns, options.compute, options.reduction_chunks);
    if (target.memory.bytes() < bytes) {
      const auto tagged = scope("panels");
      target.memory = Buffer(bytes);
    }
    target.panels.reset(rows, columns, options.compute, options.reduction_chunks, target.memory.data());
    const float* from = segment(spec.segment).master.floats() + spec.offset;
    tensor::pack_linear_rows(exec, from, 0, rows, target.panels);
    target.panels.version = version;
    target.fingerprint = fingerprint(first);
    target.ready = true;
  }

  // A sample of every parameter of a linear layer: enough to notice an update that nobody committed.
  uint64_t fingerprint(int first) const {
    uint64_t sum = 0;
    for (int i = first; i < first + specs[static_cast<size_t>(first)].fused; ++i)
      sum = base::mix(sum, param_fingerprint(values(specs[static_cast<size_t>(i)])));
    return sum;
  }
  std::span<const float> values(const ParamSpec& spec) const {
    const Segment& s = segments[static_cast<size_t>(spec.segment)];
    return {s.master.floats() + spec.offset, static_cast<size_t>(spec.count())};
  }

  Buffer zeros(int64_t floats, const char* purpose) const {
    const auto tagged = scope(purpose);
    Buffer made(float_bytes(floats));
    std::memset(made.data(), 0, static_cast<size_t>(made.bytes()));
    return made;
  }
  void drop_panels() {
    for (Packed& p : packed) p = Packed{};
  }
};

namespace {

Buffer copy_of(const Buffer& from) {
  Buffer copy(from.bytes());
  if (from.bytes() > 0) std::memcpy(copy.data(), from.data(), static_cast<size_t>(from.bytes()));
  return copy;
}

}  // namespace

Weights::Weights(shape::ModelShape shape, WeightsOptions options, tensor::Exec exec) : impl_(std::make_unique<Impl>()) {
  if (options.trained && options.compute == tensor::ComputeType::kInt8)
    throw base::InputError(base::expectation("weights of " + options.tag, "float32 or bfloat16 to train",
                                             std::string(name_of(options.compute))));
  impl_->shape = std::move(shape);
  impl_->options = std::move(options);
  impl_->exec = exec;
  impl_->specs = shape::param_specs(impl_->shape);
  for (size_t i = 0; i < impl_->specs.size(); ++i) impl_->index[impl_->specs[i].name] = static_cast<int>(i);
  for (const int64_t floats : shape::segment_floats(impl_->specs)) {
    Impl::Segment& segment = impl_->segments.emplace_back();
    segment.floats = floats;
    segment.master = impl_->zeros(floats, values_purpose(impl_->options));
    if (impl_->options.trained) segment.gradient = impl_->zeros(floats, "gradient");
  }
  impl_->packed.resize(impl_->specs.size());
}

Weights::~Weights() = default;

const shape::ModelShape& Weights::shape() const { return impl_->shape; }
const WeightsOptions& Weights::options() const { return impl_->options; }
int Weights::segments() const { return static_cast<int>(impl_->segments.size()); }
const std::vector<ParamSpec>& Weights::params() const { return impl_->specs; }

int Weights::index_of(const std::string& name) const {
  const auto found = impl_->index.find(name);
  return found == impl_->index.end() ? -1 : found->second;
}

std::span<float> Weights::master(int segment) {
  auto& s = impl_->segment(segment);
  return {s.master.floats(), static_cast<size_t>(s.floats)};
}

std::span<float> Weights::gradient(int segment) {
  auto& s = impl_->segment(segment);
  return {s.gradient.floats(), s.gradient.data() == nullptr ? 0 : static_cast<size_t>(s.floats)};
}

float* Weights::param(int index) {
  const ParamSpec& spec = impl_->specs.at(static_cast<size_t>(index));
  return impl_->segment(spec.segment).master.floats() + spec.offset;
}

float* Weights::param_gradient(int index) {
  const ParamSpec& spec = impl_->specs.at(static_cast<size_t>(index));
  float* base = impl_->segment(spec.segment).gradient.floats();
  return base == nullptr ? nullptr : base + spec.offset;
}

at::Tensor Weights::param_tensor(int index) {
  return at::from_blob(param(index), impl_->specs.at(static_cast<size_t>(index)).sizes, at::kFloat);
}

std::vector<tensor::ParamView> Weights::param_views() {
  std::vector<tensor::ParamView> views;
  for (size_t i = 0; i < impl_->specs.size(); ++i)
    views.push_back({impl_->specs[i], param_tensor(static_cast<int>(i))});
  return views;
}

std::span<const float> Weights::values(int index) const {
  impl_->check_resident();
  return impl_->values(impl_->specs.at(static_cast<size_t>(index)));
}

const tensor::LinearPanels& Weights::panels(int index) {
  const ParamSpec& spec = impl_->specs.at(static_cast<size_t>(index));
  COLLIMATE_CHECK(spec.sizes.size() == 2 && spec.fused > 0, "{} starts no linear layer", spec.name);
  impl_->check_resident();
  auto& packed = impl_->packed[static_cast<size_t>(index)];
  if (!packed.ready) impl_->pack(index, packed);
  if (packed.panels.version != impl_->version)
    throw base::GuardError(base::expectation("panels of " + spec.name, fmt::format("version {}", impl_->version),
                                             fmt::format("{}", packed.panels.version), "commit after every change"));
  if (packed.fingerprint != impl_->fingerprint(index))
    throw base::GuardError(base::expectation("panels of " + spec.name, "those of the current weights",
                                             "older ones of the same version", "commit after every change"));
  return packed.panels;
}

uint64_t Weights::version() const { return impl_->version; }

void Weights::commit() { commit(impl_->version + 1); }

void Weights::commit(uint64_t version) {
  impl_->version = version;
  for (auto& packed : impl_->packed) packed.ready = false;
}

void Weights::set_version(uint64_t version) { impl_->version = version; }

void Weights::zero_gradients() {
  for (auto& s : impl_->segments)
    if (s.gradient.data() != nullptr) std::memset(s.gradient.data(), 0, static_cast<size_t>(float_bytes(s.floats)));
}

void Weights::relocate() {
  impl_->check_resident();
  for (auto& s : impl_->segments) {
    const auto values = impl_->scope(values_purpose(impl_->options));
    s.master = copy_of(s.master);
    const auto gradient = impl_->scope("gradient");
    s.gradient = copy_of(s.gradient);
  }
  for (auto& packed : impl_->packed) {
    if (packed.memory.data() == nullptr) continue;
    const auto tagged = impl_->scope("panels");
    packed.memory = copy_of(packed.memory);
    packed.panels.data = packed.memory.data();
  }
}

void Weights::offload() {
  impl_->check_resident();
  const auto tagged = impl_->scope("offloaded");
  for (auto& s : impl_->segments) {
    impl_->away.push_back(copy_of(s.master));
    s.master = Buffer();
  }
  impl_->drop_panels();
  impl_->resident = false;
}

void Weights::restore() {
  COLLIMATE_CHECK(!impl_->resident, "restore without offload");
  const auto tagged = impl_->scope(values_purpose(impl_->options));
  for (size_t i = 0; i < impl_->segments.size(); ++i) impl_->segments[i].master = copy_of(impl_->away[i]);
  impl_->away.clear();
  impl_->resident = true;
}

void Weights::initialize(uint64_t seed, float std) {
  for (size_t i = 0; i < impl_->specs.size(); ++i) {
    const ParamSpec& spec = impl_->specs[i];
    initialize_param(spec, seed, std, {param(static_cast<int>(i)), static_cast<size_t>(spec.count())});
  }
  commit();
}

uint64_t Weights::checksum() const {
  uint64_t sum = 0;
  for (size_t i = 0; i < impl_->specs.size(); ++i)
    sum += param_checksum(impl_->specs[i].name, values(static_cast<int>(i)));
  return sum;
}

std::vector<MemoryItem> Weights::memory() const {
  std::vector<MemoryItem> items;
  for (const auto& s : impl_->segments) {
    add_item(items, values_purpose(impl_->options), s.master.bytes());
    if (s.gradient.data() != nullptr) add_item(items, "gradient", s.gradient.bytes());
  }
  for (const auto& packed : impl_->packed)
    if (packed.memory.data() != nullptr) add_item(items, "panels", packed.memory.bytes());
  for (const Buffer& buffer : impl_->away) add_item(items, "offloaded", buffer.bytes());
  return items;
}

void Weights::save(base::StateWriter& out) const {
  impl_->check_resident();
  out.json("version", impl_->version);
  out.json("compute", name_of(impl_->options.compute));
  for (size_t i = 0; i < impl_->segments.size(); ++i) {
    const auto& s = impl_->segments[i];
    out.bytes("segment." + std::to_string(i),
              {static_cast<const std::byte*>(s.master.data()), static_cast<size_t>(float_bytes(s.floats))});
  }
}

void Weights::load(base::StateReader& in) {
  if (const auto saved = in.json("compute").get<std::string>(); saved != name_of(impl_->options.compute))
    throw base::InputError(base::expectation("weights of " + impl_->options.tag, "those of compute " + saved,
                                             std::string(name_of(impl_->options.compute)),
                                             "compute: " + saved + " to continue with the same bits"));
  for (int i = 0; i < segments(); ++i) in.bytes("segment." + std::to_string(i), std::as_writable_bytes(master(i)));
  commit(in.json("version").get<uint64_t>());
}

}  // namespace collimate::model

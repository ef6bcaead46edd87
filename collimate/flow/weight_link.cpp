#include "collimate/flow/weight_link.h"

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/philox.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::flow {
namespace {

using shape::Box;
using shape::ParamSpec;
using Kept = WeightsPort::Kept;

[[noreturn]] void fail_link(const std::string& link, const std::string& expected, const std::string& got,
                            const std::string& remedy = "") {
  throw base::GuardError(base::expectation("weights " + link, expected, got, remedy));
}

uint64_t model_number(const WeightsPort& port) {
  uint64_t number = 0;
  for (const ParamSpec& spec : port.whole_params()) {
    number = base::mix(number, base::stable_hash(spec.name));
    for (const int64_t size : spec.sizes) number = base::mix(number, static_cast<uint64_t>(size));
  }
  return number;
}

void require_same_model(const std::string& link, uint64_t source, const WeightsPort& destination) {
  if (source != model_number(destination))
    fail_link(link, "the same parameters on both ends", "others", "the same model, head and adapters for both");
}

int64_t width_of(const ParamSpec& whole) { return whole.count() / whole.sizes[0]; }

// Calls visit(values on the device, count) for the values of a box, in the order of the box.
template <class Visit>
void for_each_kept_run(const std::string& link, const Kept& kept, const Box& box, const Visit& visit) {
  const auto refuse = [&] {
    fail_link(link, fmt::format("rows {} to {} of {} on this worker", box.row, box.row + box.rows, kept.spec->name),
              "a layout without them");
  };
  if (!shape::has_box(*kept.spec, box)) refuse();
  shape::for_each_run(*kept.spec, box, [&](int64_t at, int64_t count) {
    if (at < kept.begin || at + count > kept.end()) refuse();
    visit(kept.values.data() + (at - kept.begin), count);
  });
}

constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

// Appends the values of a box to `values`.
void read_box(const std::string& link, WeightsPort& port, const shape::Slice& slice, std::vector<float>& values) {
  auto next = static_cast<int64_t>(values.size());
  values.resize(values.size() + static_cast<size_t>(slice.box.count()));
  const tensor::Exec exec = port.exec();
  for_each_kept_run(link, port.kept(slice.param), slice.box, [&](const float* from, int64_t count) {
    tensor::copy_out(exec, from, count * kFloatBytes, values.data() + next);
    next += count;
  });
}

// Returns the checksum of what is kept of a parameter.
uint64_t sum_of(const std::string& link, WeightsPort& port, int param) {
  const Kept kept = port.kept(param);
  const ParamSpec& whole = base::at(port.whole_params(), param);
  std::vector<shape::Slice> slices;
  for (const Box& box : shape::boxes_of(*kept.spec, kept.begin, kept.end())) slices.push_back({param, box});
  std::vector<float> values;
  uint64_t sum = 0;
  for (const std::vector<shape::Slice>& bucket : shape::buckets_of(slices, kBucketFloats))
    for (const shape::Slice& slice : bucket) {
      values.clear();
      read_box(link, port, slice, values);
      sum += shape::checksum_of(whole.name, width_of(whole), slice.box, values);
    }
  return sum;
}

void check_sum(const std::string& link, const std::string& name, uint64_t expected, uint64_t got) {
  if (expected != got)
    fail_link(link, fmt::format("{} with checksum {:016x}", name, expected), fmt::format("{:016x}", got));
}

int params_of(const WeightsPort& port) { return static_cast<int>(port.whole_params().size()); }

}  // namespace

int64_t transfer_here(const std::string& link, WeightsPort& source, WeightsPort& destination) {
  const uint64_t version = source.version();
  if (source.identity() == destination.identity()) {
    destination.updated(version);
    return 0;
  }
  const tensor::Exec exec = destination.exec();
  COLLIMATE_CHECK(source.exec().device == exec.device, "weights {}: a worker's weights lie on its one device", link);
  require_same_model(link, model_number(source), destination);
  int64_t floats = 0;
  for (int i = 0; i < params_of(source); ++i) {
    const Kept from = source.kept(i), to = destination.kept(i);
    if (from.begin != to.begin || from.values.size() != to.values.size() || from.spec->pieces != to.spec->pieces)
      fail_link(link, fmt::format("the same part of {} on both ends", from.spec->name), "another");
    if (!source.carries(i) || from.values.empty()) continue;
    tensor::copy(exec, from.values.data(), std::ssize(from.values), to.values.data());
    floats += std::ssize(from.values);
  }
  for (int i = 0; i < params_of(source); ++i)
    if (source.kept(i).values.data() != destination.kept(i).values.data())  // else both share the base's memory
      check_sum(link, base::at(source.whole_params(), i).name, sum_of(link, source, i), sum_of(link, destination, i));
  destination.updated(version);
  return floats * kFloatBytes;
}

WeightBucket pack_bucket(const std::string& link, WeightsPort& source, const std::vector<shape::Slice>& slices) {
  WeightBucket bucket{model_number(source), source.version(), {}, {}};
  for (const shape::Slice& slice : slices) {
    const size_t before = bucket.values.size();
    read_box(link, source, slice, bucket.values);
    const ParamSpec& whole = base::at(source.whole_params(), slice.param);
    const std::span<const float> values = std::span(bucket.values).subspan(before);
    bucket.parts.push_back({slice, shape::checksum_of(whole.name, width_of(whole), slice.box, values)});
    if (!source.carries(slice.param)) bucket.values.resize(before);
  }
  const int64_t count = std::ssize(bucket.values);
  if (count > 0) base::fault_rows("weight_link", bucket.values.data(), 1, count, count);
  return bucket;
}

void IncomingWeights::take(const std::string& link, const WeightBucket& bucket, WeightsPort& destination) {
  require_same_model(link, bucket.model, destination);
  const int64_t first = bucket.parts.empty() ? -1 : bucket.parts.front().slice.param;
  if (version_.value_or(bucket.version) != bucket.version)
    fail_link(link, fmt::format("version {} of {}", *version_, base::at(destination.whole_params(), first).name),
              fmt::format("version {}", bucket.version));
  version_ = bucket.version;
  int64_t floats = 0;
  for (const WeightBucket::Part& part : bucket.parts)
    if (destination.carries(part.slice.param)) floats += part.slice.box.count();
  if (floats != std::ssize(bucket.values))
    fail_link(link, fmt::format("{} values in a bucket", floats), std::to_string(bucket.values.size()));
  const tensor::Exec exec = destination.exec();
  const float* next = bucket.values.data();
  for (const WeightBucket::Part& part : bucket.parts) {
    Got& got = got_[part.slice.param];
    got.floats += part.slice.box.count();
    got.sum += part.sum;
    if (!destination.carries(part.slice.param)) continue;
    for_each_kept_run(link, destination.kept(part.slice.param), part.slice.box, [&](float* to, int64_t count) {
      tensor::copy_in(exec, next, count * kFloatBytes, to);
      next += count;
    });
  }
}

void IncomingWeights::finish(const std::string& link, WeightsPort& destination) {
  for (int i = 0; i < params_of(destination); ++i) {
    const std::string& name = base::at(destination.whole_params(), i).name;
    const Got got = got_[i];
    if (const int64_t floats = std::ssize(destination.kept(i).values); got.floats != floats)
      fail_link(link, fmt::format("{} values of {}", floats, name), std::to_string(got.floats));
    check_sum(link, name, got.sum, sum_of(link, destination, i));
  }
  if (version_) destination.updated(*version_);
}

}  // namespace collimate::flow

#include "collimate/flow/weight_link.h"

#include <numeric>
#include <span>

#include "collimate/base/error.h"
#include "collimate/tensor/ops/memory.h"

namespace collimate::flow {
namespace {

// Gives the bytes of all. `Segments` is any list of ranges of floats.
template <class Segments>
int64_t check_layout(const std::string& link, const Segments& from, const std::vector<std::span<float>>& to) {
  std::vector<size_t> given, sizes;
  for (const auto& segment : from) given.push_back(segment.size());
  for (const auto& segment : to) sizes.push_back(segment.size());
  if (sizes != given)
    throw base::GuardError(base::expectation("weights " + link, fmt::format("segments of {}", fmt::join(given, ", ")),
                                             fmt::format("{}", fmt::join(sizes, ", ")), "the same model on both ends"));
  return static_cast<int64_t>(std::accumulate(sizes.begin(), sizes.end(), size_t{0}) * sizeof(float));
}

void check_sum(const std::string& link, uint64_t expected, uint64_t got) {
  if (expected != got)
    throw base::GuardError(
        base::expectation("weights " + link, fmt::format("checksum {:016x}", expected), fmt::format("{:016x}", got)));
}

}  // namespace

WeightTransfer export_weights(WeightsPort& source) {
  WeightTransfer transfer{source.version(), source.checksum(), {}};
  for (const std::span<const float> segment : source.segments()) {
    std::vector<float>& out = transfer.segments.emplace_back(segment.size());
    tensor::copy_out(source.exec(), segment.data(), static_cast<int64_t>(segment.size_bytes()), out.data());
  }
  return transfer;
}

int64_t import_weights(const std::string& link, const WeightTransfer& transfer, WeightsPort& destination) {
  const std::vector<std::span<float>> to = destination.segments();
  const int64_t bytes = check_layout(link, transfer.segments, to);
  for (size_t i = 0; i < to.size(); ++i)
    tensor::copy_in(destination.exec(), transfer.segments[i].data(), static_cast<int64_t>(to[i].size_bytes()),
                    to[i].data());
  destination.updated(transfer.version);
  check_sum(link, transfer.checksum, destination.checksum());
  return bytes;
}

int64_t transfer_here(const std::string& link, WeightsPort& source, WeightsPort& destination) {
  uint64_t version = source.version();
  if (source.identity() == destination.identity()) {
    destination.updated(version);
    return 0;
  }
  const tensor::Exec exec = destination.exec();
  COLLIMATE_CHECK(source.exec().device == exec.device, "weights {}: a worker's weights lie on its one device", link);
  const std::vector<std::span<float>> from = source.segments(), to = destination.segments();
  const int64_t bytes = check_layout(link, from, to);
  for (size_t i = 0; i < to.size(); ++i)
    tensor::copy(exec, from[i].data(), static_cast<int64_t>(from[i].size()), to[i].data());
  destination.updated(version);
  check_sum(link, source.checksum(), destination.checksum());
  return bytes;
}

}  // namespace collimate::flow

#include "collimate/flow/weight_link.h"

#include <algorithm>

#include "collimate/base/error.h"

namespace collimate::flow {
namespace {

void check_layout(const std::string& link, const std::vector<tensor::HostEdit>& to, const std::vector<size_t>& from) {
  std::vector<size_t> sizes;
  for (const auto& segment : to) sizes.push_back(segment.size());
  if (sizes != from)
    throw base::GuardError(base::expectation("weights " + link, fmt::format("segments of {}", fmt::join(from, ", ")),
                                             fmt::format("{}", fmt::join(sizes, ", ")), "the same model on both ends"));
}

void check_sum(const std::string& link, uint64_t expected, uint64_t got) {
  if (expected != got)
    throw base::GuardError(
        base::expectation("weights " + link, fmt::format("checksum {:016x}", expected), fmt::format("{:016x}", got)));
}

}  // namespace

WeightTransfer export_weights(WeightsPort& source) {
  WeightTransfer transfer{source.version(), source.checksum(), {}};
  for (const auto& segment : source.segments()) transfer.segments.emplace_back(segment.begin(), segment.end());
  return transfer;
}

int64_t import_weights(const std::string& link, const WeightTransfer& transfer, WeightsPort& destination) {
  std::vector<tensor::HostEdit> to = destination.segments();
  std::vector<size_t> sizes;
  for (const auto& segment : transfer.segments) sizes.push_back(segment.size());
  check_layout(link, to, sizes);
  int64_t floats = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    std::copy(transfer.segments[i].begin(), transfer.segments[i].end(), to[i].begin());
    floats += static_cast<int64_t>(to[i].size());
  }
  destination.updated(transfer.version);
  check_sum(link, transfer.checksum, destination.checksum());
  return floats * static_cast<int64_t>(sizeof(float));
}

int64_t transfer_here(const std::string& link, WeightsPort& source, WeightsPort& destination) {
  uint64_t version = source.version();
  if (source.identity() == destination.identity()) {
    destination.updated(version);
    return 0;
  }
  std::vector<tensor::HostEdit> from = source.segments();
  std::vector<tensor::HostEdit> to = destination.segments();
  std::vector<size_t> sizes;
  for (const auto& segment : from) sizes.push_back(segment.size());
  check_layout(link, to, sizes);
  int64_t floats = 0;
  for (size_t i = 0; i < to.size(); ++i) {
    std::copy(from[i].begin(), from[i].end(), to[i].begin());
    floats += static_cast<int64_t>(to[i].size());
  }
  destination.updated(version);
  check_sum(link, source.checksum(), destination.checksum());
  return floats * static_cast<int64_t>(sizeof(float));
}

}  // namespace collimate::flow

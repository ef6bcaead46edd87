#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collimate/flow/weights_port.h"

namespace collimate::flow {

// A transfer is what travels for one link: the source's segments, its version and checksum.
struct WeightTransfer {
  uint64_t version = 0;
  uint64_t checksum = 0;
  std::vector<std::vector<float>> segments;
};

// Both ends are on one worker. Equal memory is an alias: nothing is copied, the destination is told the version.
// Otherwise the segments are copied and the checksums compared. GuardError when they differ or the layouts do; `link`
// names it in messages. Returns the bytes copied.
int64_t transfer_here(const std::string& link, WeightsPort& source, WeightsPort& destination);

// The two halves of a transfer between workers.
WeightTransfer export_weights(WeightsPort& source);
int64_t import_weights(const std::string& link, const WeightTransfer& transfer, WeightsPort& destination);

}  // namespace collimate::flow

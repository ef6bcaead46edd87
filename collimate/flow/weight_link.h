#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collimate/flow/weights_port.h"
#include "collimate/shape/transfer_plan.h"

namespace collimate::flow {

// Moves weights along a link whose ends are on one worker, which has the same part of both models. Where both ends are
// the same memory, nothing is copied, and the destination is told the version. Otherwise what training changes is
// copied, and the checksums of all parameters are compared. Throws GuardError, which names the parameter, when they or
// the layouts differ; `link` names the link in messages. Returns the bytes copied.
int64_t transfer_here(const std::string& link, WeightsPort& source, WeightsPort& destination);

// A WeightBucket is sent at once from one worker to another: slices of parameters, each with its checksum at the source
// (shape::checksum_of), and the values of those that training changes, one after the other.
struct WeightBucket {
  struct Part {
    shape::Slice slice;
    uint64_t sum = 0;
  };
  uint64_t model = 0;  // hash of the parameters' names and sizes
  uint64_t version = 0;
  std::vector<Part> parts;
  std::vector<float> values;
};

// A bucket has at most this many values.
inline constexpr int64_t kBucketFloats = int64_t{1} << 22;

// Packs slices into a bucket. Throws GuardError where this rank does not keep a slice.
WeightBucket pack_bucket(const std::string& link, WeightsPort& source, const std::vector<shape::Slice>& slices);

// An IncomingWeights takes the weights that a worker gets of one transfer, bucket by bucket, in any order.
class IncomingWeights {
 public:
  // Writes the bucket's values into the destination. Throws GuardError for a bucket of another model or version, or
  // with parts that are not kept here.
  void take(const std::string& link, const WeightBucket& bucket, WeightsPort& destination);
  // Checks the transfer at its end and tells the destination the version: every value that is kept here must have come
  // once, and the checksum of each parameter must be the source's. Throws GuardError, which names the first parameter
  // that is wrong.
  void finish(const std::string& link, WeightsPort& destination);

 private:
  struct Got {
    int64_t floats = 0;
    uint64_t sum = 0;
  };
  std::optional<uint64_t> version_;
  std::map<int, Got> got_;  // by parameter
};

}  // namespace collimate::flow

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collimate/flow/weights_port.h"
#include "collimate/shape/transfer_plan.h"

namespace collimate::flow {

// Both ends are on one worker, which has the same part of both models. Equal memory is an alias: nothing is copied, the
// destination is told the version. Otherwise what training changes is copied, and the checksums of all parameters are
// compared. GuardError, which names the parameter, when they differ or the layouts do; `link` names the link in
// messages. Returns the bytes copied.
int64_t transfer_here(const std::string& link, WeightsPort& source, WeightsPort& destination);

// A bucket travels at once between two workers: slices of parameters, each with its checksum at the source
// (shape::checksum_of), and the values of those that training changes, one behind the other.
struct WeightBucket {
  struct Part {
    shape::Slice slice;
    uint64_t sum = 0;
  };
  uint64_t model = 0;  // names and sizes of the parameters, as a number
  uint64_t version = 0;
  std::vector<Part> parts;
  std::vector<float> values;
};

// Values of a bucket, at most.
inline constexpr int64_t kBucketFloats = int64_t{1} << 22;

// GuardError where this rank does not keep a slice.
WeightBucket pack_bucket(const std::string& link, WeightsPort& source, const std::vector<shape::Slice>& slices);

// The weights that a worker gets of one transfer, bucket by bucket, in any order.
class IncomingWeights {
 public:
  // Writes what the bucket has. GuardError for one of another model or version, or with parts that are not kept here.
  void take(const std::string& link, const WeightBucket& bucket, WeightsPort& destination);
  // Nothing more comes: every value that is kept here must have come once and have the source's checksum, by parameter.
  // Tells the destination the version. GuardError, which names the first parameter that is wrong.
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

#include <bit>

#include "collimate/base/philox.h"
#include "collimate/batch/standard_keys.h"

namespace collimate::batch {

int64_t make_uid(std::string_view purpose, std::string_view dataset, int64_t row, int64_t epoch, int64_t repeat,
                 int64_t attempt) {
  uint64_t hash = base::stable_hash(dataset, base::stable_hash(purpose));
  for (int64_t part : {row, epoch, repeat, attempt}) hash = base::mix(hash, std::bit_cast<uint64_t>(part));
  return std::bit_cast<int64_t>(hash);
}

}  // namespace collimate::batch

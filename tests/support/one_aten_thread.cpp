#include "collimate/tensor/aten_threads.h"

namespace collimate::test {
namespace {

// ATen computes in one thread, as in the program. OpenMP's threads spin while they wait, so that two test programs side
// by side on two cores would take ten times as long.
[[maybe_unused]] const bool kOneThread = (tensor::use_one_aten_thread(), true);

}  // namespace
}  // namespace collimate::test

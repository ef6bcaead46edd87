#include "collimate/tensor/aten_threads.h"

#include <ATen/Parallel.h>

namespace collimate::tensor {

void use_one_aten_thread() { at::set_num_threads(1); }

}  // namespace collimate::tensor

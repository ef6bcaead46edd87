#include "collimate/tensor/aten_threads.h"

#include <ATen/Parallel.h>

namespace collimate::tensor {

void use_one_aten_thread() { at::set_num_threads(1); }

OneAtenThread::OneAtenThread() : before_(at::get_num_threads()) { use_one_aten_thread(); }
OneAtenThread::~OneAtenThread() { at::set_num_threads(before_); }

}  // namespace collimate::tensor

// Alone in this file and compiled alone, so that the linker leaves it out where a program has the function already.
#include "collimate/tensor/device.h"

namespace collimate::tensor {

const Device& default_device() { return cpu_device(); }

}  // namespace collimate::tensor

// This function is alone in its file, so that the linker leaves it out where a program defines it already.
#include "collimate/tensor/device.h"

namespace collimate::tensor {

const Device& default_device() { return cpu_device(); }

}  // namespace collimate::tensor

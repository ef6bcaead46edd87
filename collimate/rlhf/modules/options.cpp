#include "collimate/rlhf/modules/options.h"

#include "collimate/rlhf/advantage/list.h"
#include "collimate/rlhf/loss/list.h"

namespace collimate::rlhf {

AlgorithmSection::AlgorithmSection() : AlgorithmOptions(loss_types(), advantage_names()) {}

}  // namespace collimate::rlhf

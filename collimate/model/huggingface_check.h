#pragma once

#include <string>

#include "collimate/model/weights.h"

namespace collimate::model {

// Throws the errors of load_huggingface about names, sizes and dtypes, without taking memory for the weights.
void check_huggingface(const std::string& directory, const std::string& head, const WeightsOptions& options);

}  // namespace collimate::model

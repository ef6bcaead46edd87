#pragma once

#include <string>

namespace collimate::model {

// The errors of load_huggingface about names and sizes, without taking memory for the weights.
void check_huggingface(const std::string& directory, const std::string& head, bool trained);

}  // namespace collimate::model

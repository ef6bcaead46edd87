#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "collimate/batch/batch.h"

// This header has facts about element types, for the files of this folder.
namespace collimate::batch {

at::ScalarType scalar_type(ElementType type);  // throws InputError for kJson, which has no tensor
std::string type_name(ElementType type);
int64_t element_bytes(ElementType type);
// Returns how many numbers one element of the column has: the product of its inner shape.
int64_t inner_count(const ColumnSchema& schema);

}  // namespace collimate::batch

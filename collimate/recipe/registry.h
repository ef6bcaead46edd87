#pragma once

#include "collimate/flow/registry.h"

namespace collimate::recipe {

// The list of module kinds: what recipes' graphs mean by them.
flow::Registry module_registry();

}  // namespace collimate::recipe

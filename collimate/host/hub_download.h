#pragma once

#include <string>

#include "collimate/host/hub_cache.h"

namespace collimate::host {

// Finds a model as hub_cache.h does; with `download` a name of a hub that the cache lacks is downloaded first, by
// PyPI's huggingface_hub in a Python process; where the cache has it the network is not asked. Blocks. InputError where
// the package, the name, the revision or the right to read it is missing; RunError where the network, the hub or the
// disk fails: the next call goes on with what has come.
std::string model_directory(const std::string& name, bool download);

}  // namespace collimate::host

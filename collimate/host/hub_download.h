#pragma once

#include <string>

#include "collimate/host/hub_cache.h"

namespace collimate::host {

// Finds a model as hub_cache.h does. With `download` a hub's model that the cache lacks is downloaded first, by PyPI's
// huggingface_hub in a Python process; when the cache has it, the network is not used. Blocks. Throws InputError where
// the package, the name, the revision or the right to read it is missing, and RunError where the network, the hub or
// the disk fails; the next call then continues from what has been downloaded.
std::string model_directory(const std::string& name, bool download);

}  // namespace collimate::host

#pragma once

#include <cstdint>
#include <string>

namespace collimate::recipe {

// Starts a Python process that imports the file, and registers what the file marks. Each function under
// `@collimate.flow` is a recipe, traced in that process whenever a plan is made (python/collimate/flows.py), each under
// `@collimate.loss` a loss (recipe/python_loss.h), each class under `@collimate.module` a module
// (recipe/python_module.h). The process has no sandbox: a plugin may do all that its user may. `crc` is the CRC-32C of
// the file, which every process of the run that imports it must find. Throws InputError, with Python's own message and
// the lines of the file, where the file cannot be imported, and for a name that is taken.
void load_python_plugin(const std::string& path, uint32_t crc);

}  // namespace collimate::recipe

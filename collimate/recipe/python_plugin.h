#pragma once

#include <cstdint>
#include <string>

namespace collimate::recipe {

// Starts a Python process that imports the file, and registers what the file marks. Each function under
// `@collimate.flow` is a recipe, traced in that process whenever a plan is made (python/collimate/flows.py), each under
// `@collimate.loss` a loss (recipe/python_loss.h), each class under `@collimate.module` a module
// (recipe/python_module.h). It has no sandbox: a plugin may do all that its user may. InputError with Python's own
// message and the lines of the file where it cannot be imported, and for a name that is taken. `crc` is of its content,
// which every process of the run that imports it must find.
void load_python_plugin(const std::string& path, uint32_t crc);

}  // namespace collimate::recipe

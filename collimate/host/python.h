#pragma once

#include <string>

#include "collimate/host/child_process.h"

namespace collimate::host {

// Returns the interpreter for Collimate's own Python: $COLLIMATE_PYTHON, else python3.
std::string python_interpreter();
// Returns the file of a module, for example sandbox.py. Throws InputError where it is not installed.
std::string package_file(const std::string& module);
// Returns the options of a child that runs `interpreter -m collimate.MODULE ARGUMENTS…`, a module of Collimate's
// Python package (python/collimate, or where $COLLIMATE_PYTHON_PATH has it).
ChildOptions python_module(const std::string& interpreter, const std::string& module,
                           const std::vector<std::string>& arguments);

}  // namespace collimate::host

#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "collimate/recipe/python_process.h"

namespace collimate::recipe {

// Registers a loss of a Python plugin. `told` is what the plugin tells of it: {"name", "rows", "columns", "needs",
// "options", "pair"}. The quantities and columns of each micro-batch go to the process, which returns the loss, its
// gradient by each quantity (PyTorch has differentiated it) and its metrics. Throws InputError for a name that is
// taken, and for rows, needs and options that do not exist.
void register_python_loss(const std::shared_ptr<PythonProcess>& process, const nlohmann::json& told);

}  // namespace collimate::recipe

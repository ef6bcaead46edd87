#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "collimate/recipe/python_process.h"

namespace collimate::recipe {

// Registers a loss of a Python plugin, as it tells of it: {"name", "rows", "columns", "needs", "options", "pair"}. Each
// micro-batch's quantities and columns go to the process, which gives the loss, its gradient by each quantity (PyTorch
// has differentiated it) and its metrics. InputError for a name that is taken and for rows and needs that are none.
void register_python_loss(const std::shared_ptr<PythonProcess>& process, const nlohmann::json& told);

}  // namespace collimate::recipe

#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace collimate::recipe {

// Registers a module of a Python plugin, as it tells of it: {"name", "functions"}. Each object of it starts a process
// of its own at setup (python/collimate/modules.py), in which it lives; batches go there and back. `crc` is of the file
// that has told: setup refuses another content. InputError for a name that is taken, and for functions that are none
// (graph::function_spec_from_json).
void register_python_module(const std::string& path, uint32_t crc, const nlohmann::json& told);

}  // namespace collimate::recipe

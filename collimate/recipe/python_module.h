#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace collimate::recipe {

// Registers a module of a Python plugin. `told` is what the plugin tells of it: {"name", "functions"}. Each object of
// the module lives in a process of its own, which it starts at setup (python/collimate/modules.py); batches go there
// and back. `crc` is the CRC-32C of the file that has told, and setup refuses another content. Throws InputError for a
// name that is taken, and for functions that graph::function_spec_from_json cannot read.
void register_python_module(const std::string& path, uint32_t crc, const nlohmann::json& told);

}  // namespace collimate::recipe

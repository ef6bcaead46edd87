#pragma once

#include "tests/support/small_family_configs.h"
#include "tests/support/small_task.h"

namespace collimate::test {

// Writes a model as write_small_model does, of a family of small_families(); "llama" is that model itself.
inline void write_small_model_of(const std::string& family, const fs::path& directory) {
  write_small_model(directory);
  if (family != "llama") write_text(directory / "config.json", small_families().at(family));
}

}  // namespace collimate::test

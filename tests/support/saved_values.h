#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/small_task.h"

namespace collimate::test {

using SavedValues = std::map<std::string, std::vector<float>>;

// Reads a model's tensors in that checkpoint, by "array name", from what all of its ranks have written. Each value is
// there once, or at most as often as there are tensor ranks, which all have norms and biases.
inline SavedValues saved_values_of(const std::string& output, const std::string& model, int step, size_t tp = 1) {
  SavedValues tensors;
  std::map<std::string, size_t> written;
  const std::string directory = fmt::format("{}/checkpoints/step-{:06}/models/{}", output, step, model);
  for (const auto& rank : fs::directory_iterator(directory)) {
    if (!fs::exists(rank.path() / "tensors.json")) continue;  // a rank that has no part
    const auto list = nlohmann::json::parse(read_text(rank.path() / "tensors.json"));
    for (const auto& [file, content] : list.items()) {
      const std::string bytes = read_text(rank.path() / file);
      for (const nlohmann::json& part : content.at("parts")) {
        const std::string name =
            fmt::format("{} {}", content.at("array").get<std::string>(), part[0].get<std::string>());
        const size_t columns = part[2], row = part[3][0], rows = part[3][1], column = part[3][2], width = part[3][3];
        std::vector<float>& values = tensors[name];
        values.resize(part[1].get<size_t>() * columns);
        for (size_t r = 0; r < rows; ++r)
          std::memcpy(values.data() + (row + r) * columns + column,
                      bytes.data() + (part[4].get<size_t>() + r * width) * sizeof(float), width * sizeof(float));
        written[name] += rows * width;
      }
    }
  }
  for (const auto& [name, count] : written) {
    EXPECT_GE(count, tensors.at(name).size()) << model << " " << name;
    EXPECT_LE(count, tp * tensors.at(name).size()) << model << " " << name;
  }
  return tensors;
}

}  // namespace collimate::test

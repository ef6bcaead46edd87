#pragma once

#include <string>

namespace collimate::recipe {

// A config of the recipe to begin with, with comments: under 25 lines that `check` takes. `model` is a directory or a
// hub's name, `data` a file. InputError for an unknown recipe.
std::string starter(const std::string& recipe, const std::string& model, const std::string& data);
// Shows how a row of the recipe's data looks, a line for each shape.
std::string data_shapes(const std::string& recipe);

}  // namespace collimate::recipe

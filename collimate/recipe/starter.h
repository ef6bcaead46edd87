#pragma once

#include <string>

namespace collimate::recipe {

// A config of the recipe to begin with, with comments: under 25 lines that `check` takes. `model` is a directory or a
// hub's name, `data` a file. Where they are there, lengths are within the model's positions, and a chat template is
// named where conversations need one. `file`, RECIPE.yaml by default, is what the commands in its comment name.
// InputError for an unknown recipe, for a model or data that cannot be read, and for a first row that the recipe cannot
// use: it names the columns, what would do, and which recipe reads such rows.
std::string starter(const std::string& recipe, const std::string& model, const std::string& data,
                    const std::string& file = "");
// Shows how a row of the recipe's data looks, a line for each shape.
std::string data_shapes(const std::string& recipe);

}  // namespace collimate::recipe

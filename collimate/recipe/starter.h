#pragma once

#include <string>

namespace collimate::recipe {

// Returns a config of the recipe to begin with: under 25 lines, with comments, that `check` takes. `model` is a
// directory or a hub's name, `data` a file. Where these are there, lengths are within the model's positions, and a chat
// template is named where conversations need one. `file`, RECIPE.yaml by default, is the name in the commands of its
// comment. Throws InputError for an unknown recipe, for a model or data that cannot be read, and for a first row that
// the recipe cannot use. That error names the columns, what would do, and which recipe reads such rows.
std::string starter(const std::string& recipe, const std::string& model, const std::string& data,
                    const std::string& file = "");
// Returns how a row of the recipe's data looks, a line for each shape.
std::string data_shapes(const std::string& recipe);

}  // namespace collimate::recipe

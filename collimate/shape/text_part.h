#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

// These functions handle models that read images beside text and hold a language model of a family that runs here. Only
// that language model is read.
namespace collimate::shape {

// Returns the config.json of the language model inside a model that also reads images, as its family would write it;
// nothing for any other config. Throws InputError, which names `where`, when the language model is of a family that
// such models do not have.
std::optional<nlohmann::json> text_part_config(const nlohmann::json& config, const std::string& where);

// Returns the name that a tensor of such a model has where the language model stands alone, given its name as older or
// newer versions of transformers write it; nothing for a tensor of another part of the model.
std::optional<std::string> text_part_name(const std::string& name);

// Reverses text_part_name: returns the name that transformers 5 gives to a tensor of the language model inside a model
// of type `text_part_of`; the name as it is where that is "".
std::string name_in_whole(const std::string& text_part_of, const std::string& name);

}  // namespace collimate::shape

#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

// Models that read images beside texts hold a language model of a family that runs: it alone is read.
namespace collimate::shape {

// The config.json of that language model, as its family's own, of a config of a model that reads images too; nothing of
// any other config. InputError for a language model of another family than such models have, naming `where`.
std::optional<nlohmann::json> text_part_config(const nlohmann::json& config, const std::string& where);

// The name that a tensor of such a model has where the language model stands alone, as older and newer versions of
// transformers write it; nothing for one of the other parts.
std::optional<std::string> text_part_name(const std::string& name);

// The name that transformers 5 has for it in the whole, of which text_part_name makes the one it has alone: of a
// language model in a model of that type, or "" where it stands alone.
std::string name_in_whole(const std::string& text_part_of, const std::string& name);

}  // namespace collimate::shape

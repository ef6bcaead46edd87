#include "collimate/recipe/unread.h"

#include "collimate/base/error.h"

namespace collimate::recipe {

nlohmann::json set_options(const base::Section& given, const base::Section& standard) {
  const nlohmann::json values = base::to_json(given.section_value());
  const nlohmann::json defaults = base::to_json(standard.section_value());
  nlohmann::json set = nlohmann::json::object();
  for (const auto& [name, value] : values.items())
    if (value != defaults.at(name)) set[name] = value;
  return set;
}

void refuse_unread(const std::string& option, const std::string& recipe, const std::string& why,
                   const nlohmann::json& value, const std::string& remedy) {
  throw base::InputError(
      base::expectation(option, fmt::format("an option that recipe {} reads{}", recipe, why), value.dump(), remedy));
}

}  // namespace collimate::recipe

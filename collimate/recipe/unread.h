#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "collimate/base/section.h"

namespace collimate::recipe {

// An option that nothing reads may be written out, as a resolved config does, but not be set.

// The options of a section that have another value than in `standard`, with their values.
nlohmann::json set_options(const base::Section& given, const base::Section& standard);
// InputError: "[option] expected an option that recipe NAME reads<why>, got VALUE; try <remedy>".
[[noreturn]] void refuse_unread(const std::string& option, const std::string& recipe, const std::string& why,
                                const nlohmann::json& value, const std::string& remedy = "");

}  // namespace collimate::recipe

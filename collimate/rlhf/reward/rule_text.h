#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// Returns a column of the sample's row: a string as it is, any other value as JSON. Throws InputError when the row has
// no such column, or null there.
std::string text_field(const RewardSample& sample, const std::string& field);

// Returns the parts between separators, empty ones too; an empty text has no parts.
std::vector<std::string_view> split(std::string_view text, char separator);

// Returns the first number behind the last "####" or, in a text without that mark, its last number, without commas and
// currency signs; "" when there is none. A point in front is part of the number, except behind a letter or another
// point ("eq.5", "...5").
std::string final_number(const std::string& text);

}  // namespace collimate::rlhf

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collimate/rlhf/reward/reward.h"

namespace collimate::rlhf {

// A column of the sample's row as text. InputError when the row has none.
std::string text_field(const RewardSample& sample, const std::string& field);

// The parts between separators, empty ones too; no parts of an empty text.
std::vector<std::string_view> split(std::string_view text, char separator);

// The number after "####" or, failing that, the last number of the text, without commas and currency signs; "" when
// there is none. A point in front is part of it, except behind a letter or another point ("eq.5", "...5").
std::string final_number(const std::string& text);

}  // namespace collimate::rlhf

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collimate/base/html.h"
#include "collimate/base/memory_words.h"

namespace collimate::report {

inline std::string escape(std::string_view text) { return base::html_escape(text); }

// Writes a number with three significant digits, or `digits`: "0.0123", "12.3k", "4.1M"; one from 1000 to 9999 has
// four. `percent` multiplies the number by 100 and appends the sign.
std::string short_number(double value, bool percent = false, int digits = 3);
// Labels the ticks of an axis with as many digits as tell them apart, from three on.
std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool percent = false);
std::string duration(double seconds);  // "350 ms", "42.1 s", "3 min 07 s", "2 h 05 min"
using base::byte_size;                 // "1.4 GiB"

// style_sheet() is that of the page, over base::html_palette(); page_script() shows values under the pointer or by
// arrow keys.
std::string_view style_sheet();
std::string_view page_script();

}  // namespace collimate::report

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "collimate/base/html.h"
#include "collimate/base/memory_words.h"

namespace collimate::report {

inline std::string escape(std::string_view text) { return base::html_escape(text); }

// "0.0123", "12.3k", "4.1M": three significant digits. `percent` multiplies by 100 and appends " %".
std::string short_number(double value, bool percent = false, int digits = 3);
// Labels the ticks of an axis with as many digits as tell them apart.
std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool percent = false);
std::string duration(double seconds);  // "42.1 s", "3 min 07 s", "2 h 05 min"
using base::byte_size;                 // "1.4 GiB"

// The style sheet, over base::html_palette(), and the small script (values under the pointer, or by arrow keys) of the
// page.
std::string_view style_sheet();
std::string_view page_script();

}  // namespace collimate::report

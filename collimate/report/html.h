#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace collimate::report {

// Text for an element or a quoted attribute: & < > " ' become entities, control characters other than tab and newline
// become their visible symbols (U+2400..).
std::string escape(std::string_view text);

// "0.0123", "12.3k", "4.1M": three significant digits. `percent` multiplies by 100 and appends " %".
std::string short_number(double value, bool percent = false, int digits = 3);
// Labels the ticks of an axis with as many digits as tell them apart.
std::vector<std::string> tick_labels(const std::vector<double>& ticks, bool percent = false);
std::string duration(double seconds);  // "42.1 s", "3 min 07 s", "2 h 05 min"
std::string byte_size(double bytes);   // "1.4 GiB"

// The beginning of a page, up to the inside of <main>; `title` is HTML already.
std::string page_head(const std::string& title);

// The style sheet and the small script (values under the pointer) of the page.
std::string_view style_sheet();
std::string_view page_script();

}  // namespace collimate::report

#pragma once

#include <string>
#include <string_view>

namespace collimate::base {

// Returns a text for an element or a quoted attribute: & < > " ' become entities, and control characters other than tab
// and newline become their visible symbols (U+2400..).
std::string html_escape(std::string_view text);

// Returns the colours of every page as a style sheet's variables, for light and dark: --paper, --panel, --line, --ink
// (text), --soft (less prominent text), --good, --bad, --on (text on a series' colour) and --c0 to --c7, the series.
// The contrast of each text with its background is at least 4.5 (WCAG 2.1, AA); base/html_test.cpp computes it.
std::string_view html_palette();

}  // namespace collimate::base

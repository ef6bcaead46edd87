#pragma once

#include <string>
#include <string_view>

namespace collimate::base {

// Text for an element or a quoted attribute: & < > " ' become entities, control characters other than tab and newline
// become their visible symbols (U+2400..).
std::string html_escape(std::string_view text);

// The colours of every page as a style sheet's variables, in light and dark: --paper, --panel, --line, --ink (text),
// --soft (less of it), --good, --bad, --on (text on a series' colour) and --c0 to --c7, the series. Each text's
// contrast with what it stands on is at least 4.5 (WCAG 2.1, AA); base/html_test.cpp computes it.
std::string_view html_palette();

}  // namespace collimate::base

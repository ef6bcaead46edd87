#include "collimate/base/html.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

namespace collimate::base {
namespace {

// Relative luminance of "#rrggbb" (WCAG 2.1).
double luminance(const std::string& color) {
  const double weights[] = {0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (size_t i = 0; i < 3; ++i) {
    const double part = std::stoi(color.substr(1 + 2 * i, 2), nullptr, 16) / 255.0;
    sum += weights[i] * (part <= 0.03928 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(const std::string& a, const std::string& b) {
  const auto [low, high] = std::minmax({luminance(a), luminance(b)});
  return (high + 0.05) / (low + 0.05);
}

std::map<std::string, std::string> colors_in(const std::string& css) {
  std::map<std::string, std::string> colors;
  const std::regex pattern("--([a-z0-9]+):(#[0-9a-f]{6})");
  for (std::sregex_iterator at(css.begin(), css.end(), pattern), end; at != end; ++at) colors[(*at)[1]] = (*at)[2];
  return colors;
}

TEST(HtmlPalette, TextCanBeReadInLightAndDark) {
  const std::string css(html_palette());
  const size_t dark = css.find("@media");
  ASSERT_NE(dark, std::string::npos);
  for (const std::string& part : {css.substr(0, dark), css.substr(dark)}) {
    const auto colors = colors_in(part);
    ASSERT_EQ(colors.size(), 16U);
    for (const char* text : {"ink", "soft", "good", "bad"})
      for (const char* below : {"paper", "panel"})
        EXPECT_GE(contrast(colors.at(text), colors.at(below)), 4.5) << text << " on " << below;
    for (int i = 0; i < 8; ++i) {
      const std::string& series = colors.at(fmt::format("c{}", i));
      EXPECT_GE(contrast(colors.at("on"), series), 4.5) << "text on c" << i;
      EXPECT_GE(contrast(series, colors.at("panel")), 3) << "a curve of c" << i;
    }
  }
}

TEST(HtmlEscape, MarkupAndControlCharactersShow) {
  EXPECT_EQ(html_escape("<a b=\"c\">'&'\x01\n"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp;&#39;&#9217;\n");
}

}  // namespace
}  // namespace collimate::base

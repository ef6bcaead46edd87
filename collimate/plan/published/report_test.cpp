#include "collimate/plan/published/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <fstream>
#include <sstream>

#include "collimate/plan/inputs/backends.h"

namespace collimate::plan::published {
namespace {

// Without line breaks (of strings too), blanks and comments of whole lines.
std::string packed(std::istream& text) {
  std::string kept, line;
  while (std::getline(text, line)) {
    const size_t first = line.find_first_not_of(' ');
    if (first == std::string::npos || line.compare(first, 2, "//") == 0) continue;
    for (const char c : line)
      if (std::isspace(static_cast<unsigned char>(c)) == 0) kept += c;
  }
  for (size_t joint; (joint = kept.find("\"\"")) != std::string::npos;) kept.erase(joint, 2);
  return kept;
}

// What --fit prints takes a row's place as it is: the shipped constants give the shipped rows.
TEST(Report, AFitIsPrintedAsTheBackEndsAreWritten) {
  std::ifstream file(COLLIMATE_SOURCE_DIR "/collimate/plan/inputs/backends.cpp");
  const std::string source = packed(file);
  for (const Backend& backend : backends()) {
    if (!backend.fitted) continue;
    std::istringstream printed(fits_text({{backend.name, 3, 0.25, constants_of(backend.name)}}));
    const std::string text = packed(printed);
    ASSERT_NE(text.find("{.name"), std::string::npos) << text;
    EXPECT_THAT(source, testing::HasSubstr(text.substr(text.find("{.name")))) << backend.name;
  }
  EXPECT_THAT(fits_text({{"verl", 3, 0.25, constants_of("verl")}}),
              testing::HasSubstr("\n    // 3 rows, mean |log error| 0.250\n    {.name = \"verl\",\n"));
}

}  // namespace
}  // namespace collimate::plan::published

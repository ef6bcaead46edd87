#include "collimate/text/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"

namespace collimate::text::jinja {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

// Those in the repository, or those that COLLIMATE_TEMPLATE_CASES names.
ordered_json goldens() {
  const char* others = std::getenv("COLLIMATE_TEMPLATE_CASES");
  return ordered_json::parse(
      std::ifstream(others != nullptr ? others : COLLIMATE_SOURCE_DIR "/tests/golden/templates.json"));
}

// Our templates write what Jinja2 writes and refuse what it refuses (tests/golden/make_templates.py).
TEST(Jinja, WritesWhatJinja2Writes) {
  const ordered_json all = goldens();
  EXPECT_GT(all.at("cases").size(), 50U);
  for (const ordered_json& one : all.at("cases")) {
    const auto source = one.at("template").get<std::string>();
    const ordered_json variables = one.value("variables", all.at("variables"));
    if (one.at("text").is_null()) {
      EXPECT_THROW(Template(source).render(variables), base::InputError) << source;
      continue;
    }
    try {
      EXPECT_EQ(Template(source).render(variables), one.at("text").get<std::string>()) << source;
    } catch (const base::InputError& error) {
      ADD_FAILURE() << source << "\n" << error.what();
    }
  }
}

std::string refusal_of(const std::string& source) {
  return base::message_of([&] { Template(source).render({{"x", 1}}); });
}

TEST(Jinja, RefusalsNameTheirLine) {
  EXPECT_THAT(refusal_of("a\n\n{{ x | shout }}"),
              HasSubstr("[chat template line 3] expected one of the filters abs, "));
  EXPECT_THAT(refusal_of("{% if x %}\n{{ raise_exception('Only one turn') }}{% endif %}"),
              HasSubstr("[chat template line 2] expected a conversation that the template takes, got Only one turn"));
  EXPECT_THAT(refusal_of("\n{% import 'y' %}"), HasSubstr("line 2] expected for, if, set, "));
  EXPECT_THAT(refusal_of("{{ y.z }}"), HasSubstr("got 'y', which is undefined"));
}

// Neither time nor memory nor the stack is without end.
TEST(Jinja, TemplatesEnd) {
  const std::string deep(5000, '(');
  for (const std::string& source :
       {std::string("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"),
        std::string("{{ 'x' * 999999999999 }}"), std::string("{{ range(9999999) | list }}"),
        std::string("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}"), "{{ " + deep,
        "{{ " + std::string(5000, '-') + "1 }}",
        std::string("{% set s = 'ab' %}{% for i in range(99) %}{% set s = s ~ s %}{{ s }}{% endfor %}") +
            "{{ [0] * 99999999 }}"})
    EXPECT_THROW(Template(source).render({}), base::InputError) << source.substr(0, 80);
}

// Changed bytes, cut and doubled pieces: a template is written or refused.
TEST(Jinja, DamagedTemplatesAreWrittenOrRefused) {
  const ordered_json all = goldens();
  std::mt19937 draw(3);
  int refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const ordered_json& cases = all.at("cases");
    std::string source = cases[draw() % cases.size()].at("template").get<std::string>() +
                         cases[draw() % cases.size()].at("template").get<std::string>();
    for (uint32_t edits = draw() % 4 + 1; edits > 0 && !source.empty(); --edits) {
      const size_t at = draw() % source.size();
      if (draw() % 2 == 0) {
        source[at] = "{}%|()[]'\"-+.,:~ \n0a"[draw() % 20];
      } else {
        source.insert(at, source.substr(draw() % source.size(), draw() % 12));
      }
    }
    try {
      Template(source).render(all.at("variables"));
    } catch (const base::InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace collimate::text::jinja

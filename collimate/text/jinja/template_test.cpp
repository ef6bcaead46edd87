#include "collimate/text/jinja/template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/read_file.h"
#include "tests/support/base/error_of.h"
#include "tests/support/fault_control.h"

namespace collimate::text::jinja {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

std::string variable(const char* name, const std::string& otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : value;
}

// The cases in the repository, or those that COLLIMATE_TEMPLATE_CASES names.
ordered_json goldens() {
  return ordered_json::parse(
      std::ifstream(variable("COLLIMATE_TEMPLATE_CASES", COLLIMATE_SOURCE_DIR "/tests/golden/templates.json")));
}

// The templates of such cases, and the files *.jinja of COLLIMATE_TEMPLATE_DIRECTORY.
std::vector<std::string> templates_of(const ordered_json& known) {
  std::vector<std::string> all;
  for (const ordered_json& one : known.at("cases")) all.push_back(one.at("template"));
  std::set<std::filesystem::path> files;
  if (const std::string directory = variable("COLLIMATE_TEMPLATE_DIRECTORY", ""); !directory.empty())
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      if (entry.path().extension() == ".jinja") files.insert(entry.path());
  for (const std::filesystem::path& file : files) all.push_back(base::read_file(file));
  return all;
}

// One to four changed bytes, or pieces that stand twice.
void damage(std::string& source, std::mt19937& draw) {
  for (uint32_t edits = draw() % 4 + 1; edits > 0 && !source.empty(); --edits) {
    const size_t at = draw() % source.size();
    if (draw() % 2 == 0) {
      source[at] = "{}%|()[]'\"-+.,:~ \n0a"[draw() % 20];
    } else {
      source.insert(at, source.substr(draw() % source.size(), draw() % 12));
    }
  }
}

void expect_as_jinja2(const ordered_json& all) {
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

// Our templates write what Jinja2 writes and refuse what it refuses (tests/golden/make_templates.py).
TEST(Jinja, WritesWhatJinja2Writes) {
  const ordered_json all = goldens();
  EXPECT_GT(all.at("cases").size(), 50U);
  expect_as_jinja2(all);
}

// So do templates that a program drew (tests/golden/make_random_templates.py).
TEST(Jinja, WritesDrawnTemplatesAsJinja2Does) {
  const auto all = ordered_json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/random_templates.json"));
  EXPECT_EQ(all.at("cases").size(), 400U);
  expect_as_jinja2(all);
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
  EXPECT_THAT(refusal_of("{{ 1e17 * 1000 | int }}{{ (1e17 * 1000) | int }}"),
              HasSubstr("expected a number of 64 bits, got 1e+20"));
  EXPECT_THAT(refusal_of("\n{{ 'x' * 999999999999 }}"),
              HasSubstr("line 2] expected at most 512 MiB of texts, lists and steps, got more"));
}

// CPython 3.11 and Jinja2 3.1.6 write these texts.
TEST(Jinja, MethodsOfADictionaryGoBeforeItsMembers) {
  const auto written = [](const char* source) {
    return Template(source).render(ordered_json::parse(R"({"p": {"items": 1, "b": 2}})"));
  };
  EXPECT_EQ(written(R"({{ {"items": 1}.items() | list | length }})"), "1");
  EXPECT_EQ(written("{% for k, v in p.items() %}{{ k }}={{ v }};{% endfor %}"), "items=1;b=2;");
  EXPECT_EQ(written(R"({{ {"items": 1}["items"] }}{{ p["items"] }})"), "11");
  EXPECT_EQ(written("{{ {}.items is defined }}"), "True");
  EXPECT_EQ(written(R"({{ namespace({"a": 1}, a=2).a }})"), "2");
}

TEST(Jinja, PartsOfTextsAreSearched) {
  const auto written = [](const std::string& call) { return Template("{{ " + call + " }}").render({}); };
  EXPECT_EQ(written(R"("abcabc".find("a", 1))"), "3");
  EXPECT_EQ(written(R"("abcabc".find("a", -2))"), "-1");
  EXPECT_EQ(written(R"("abcabc".find("c", 0, 2))"), "-1");
  EXPECT_EQ(written("\"\u00e9a\u00e9a\".rfind(\"a\", 1)"), "3");
  EXPECT_EQ(written(R"("abcabc".startswith("b", 1))"), "True");
  EXPECT_EQ(written(R"("abcabc".endswith("b", 0, 2))"), "True");
  EXPECT_EQ(written(R"("abcabc".count("a", 1))"), "1");
}

TEST(Jinja, CharactersOfTexts) {
  EXPECT_THAT(refusal_of(R"({{ "\U00110000" }})"), HasSubstr("expected the number of a character, got 00110000"));
  EXPECT_EQ(Template("{{ [x] }}").render({{"x", "\x7f"}}), R"(['\x7f'])");
}

TEST(Jinja, WholeNumbersBeyond64BitsAreRefused) {
  const auto written = [](const char* number) { return Template("{{ x }}").render(ordered_json::parse(number)); };
  EXPECT_EQ(written(R"({"x": [9223372036854775807, -9223372036854775808]})"),
            "[9223372036854775807, -9223372036854775808]");
  for (const char* number : {"9223372036854775808", "12345678901234567890", "18446744073709551615"})
    EXPECT_THAT(base::message_of([&] { written((std::string(R"({"x": [)") + number + "]}").c_str()); }),
                HasSubstr(std::string("expected whole numbers up to 9223372036854775807, got ") + number));
  for (const char* power : {"2 ** 63", "10 ** 400", "(-3) ** 41"})
    EXPECT_THAT(refusal_of("{{ " + std::string(power) + " }}"), HasSubstr("expected numbers of 64 bits")) << power;
}

// Sums of 4 MiB end in the time that a test has.
int64_t small_budget(std::string_view place, int64_t count) { return place == "template.budget" ? count / 128 : count; }

TEST(Jinja, ListsHaveAnEndOfTheirLevels) {
  EXPECT_THAT(refusal_of("{% set n = namespace(x=[1]) %}{% for i in range(300) %}{% set n.x = [n.x] %}{% endfor %}"),
              HasSubstr("expected lists of at most 200 levels, got more"));
}

// Neither time nor memory nor the stack is without end.
TEST(Jinja, TemplatesEnd) {
  const base::CountAnswers small(small_budget);
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

// A template that doubles a value is refused, and so is every use of lists that hold one list 2^45 times.
TEST(Jinja, NothingGrowsWithoutEnd) {
  const auto looped = [](const std::string& first, const std::string& next, int times, const std::string& use) {
    return "{% set ns = namespace(a=" + first + ") %}{% for i in range(" + std::to_string(times) +
           ") %}{% set ns.a = " + next + " %}{% endfor %}" + use;
  };
  std::vector<std::string> sources = {"{{ [[0] * 1000000] * 100000 }}",
                                      "{{ ('a' * 3000000).split('a') | join('b' * 10000) }}",
                                      "{{ 'b'.join(['a' * 1000000] * 100000) }}", looped("[]", "[ns.a]", 99999, ""),
                                      looped("{}", "{'a': [ns.a]}", 99999, "")};
  for (const char* next : {"ns.a ~ ns.a", "ns.a + ns.a", "ns.a * 2", "[ns.a, ns.a] | join", "ns.a.join([ns.a, ns.a])",
                           "ns.a.replace('x', 'xx')", "(ns.a, ns.a) ~ ''"})
    sources.push_back(looped("'x'", next, 99999, ""));
  for (const char* next : {"ns.a + ns.a", "ns.a * 2", "(ns.a ~ ns.a) | list"})
    sources.push_back(looped("[1]", next, 99999, ""));
  for (const char* use : {"ns.a", "ns.a | tojson", "ns.a == [ns.a, 1][0]", "ns.a < ns.a", "ns.a in [ns.a]",
                          "[ns.a, ns.a] | unique", "[ns.a, ns.a] | sort", "[ns.a].count(ns.a)"})
    sources.push_back(looped("[0]", "[ns.a, ns.a]", 45, "{{ " + std::string(use) + " }}"));
  const std::string big = "{% set a = 'y' * 100000 %}{% set b = ('y' * 9999) ~ 'x' %}{% set l = [0] * 100000 %}";
  for (const char* work : {"'x' in a", "a.rfind('x' ~ b)", "a.replace(b, '')", "a.strip(b)", "a < a", "1 in l",
                           "l | sum", "l[:]", "l | reject | list"})
    sources.push_back(big + "{% for i in range(99999) %}{% if " + std::string(work) + " %}{% endif %}{% endfor %}");
  EXPECT_THROW(Template(sources.front()).render({}), base::InputError);
  const base::CountAnswers small(small_budget);
  for (const std::string& source : sources) EXPECT_THROW(Template(source).render({}), base::InputError) << source;
  std::string chain = "{{ 'a'";
  for (int i = 0; i < 100'000; ++i) chain += " ~ 'a'";
  EXPECT_THAT(refusal_of(chain + " }}"), HasSubstr("at most 200 operators in a row"));
}

// A megabyte in 1,000 messages, parts of which are collected and looked at again for each message.
TEST(Jinja, LongConversationsAreWritten) {
  ordered_json messages = ordered_json::array();
  for (int i = 0; i < 1000; ++i)
    messages.push_back({{"role", i % 2 == 0 ? "user" : "assistant"}, {"content", std::string(1000, 'a')}});
  const Template chat(
      "{% set ns = namespace(all='', last=-1) %}{% for m in messages %}"
      "{% if '</think>' in m.content %}{% set ns.last = loop.index0 %}{% endif %}"
      "{% set ns.all = ns.all ~ (m.content.split('</think>')[-1] | trim)[:100] %}"
      "{% if messages[loop.index0:] | first == m and (messages | last).content[:3] == 'aaa' %}{{ m | tojson }}{% endif "
      "%}"
      "{% endfor %}{{ ns.all }}");
  EXPECT_GT(chat.render({{"messages", messages}}).size(), 1'100'000U);
}

// A caller is a function only where it stands; namespaces may hold themselves and each other.
TEST(Jinja, NothingOutlivesItsScope) {
  EXPECT_THAT(refusal_of("{% set ns = namespace() %}{% macro m() %}{% set ns.c = caller %}{% endmacro %}"
                         "{% for i in [1] %}{% call m() %}{{ i }}{% endcall %}{% endfor %}{% set c = ns.c %}{{ c() }}"),
              HasSubstr("expected a call by the name caller"));
  EXPECT_EQ(Template("{% set r = range %}{{ r(2) | last }}{% set ns = namespace() %}{% set ns.a = ns %}"
                     "{% for i in range(99999) %}{% set ns.a = namespace(a=ns.a) %}{% endfor %}")
                .render({}),
            "1");
}

// Two templates behind each other with damage are written or refused, in COLLIMATE_TEMPLATE_ROUNDS rounds.
TEST(Jinja, DamagedTemplatesAreWrittenOrRefused) {
  const ordered_json all = goldens();
  const std::vector<std::string> templates = templates_of(all);
  const int rounds = std::stoi(variable("COLLIMATE_TEMPLATE_ROUNDS", "3000"));
  std::mt19937 draw(3);
  int refused = 0;
  for (int round = 0; round < rounds; ++round) {
    std::string source = templates[draw() % templates.size()];
    source += templates[draw() % templates.size()];
    damage(source, draw);
    try {
      Template(source).render(all.at("variables"));
    } catch (const base::InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, rounds / 10);
}

}  // namespace
}  // namespace collimate::text::jinja

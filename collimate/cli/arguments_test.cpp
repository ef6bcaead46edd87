#include "collimate/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "collimate/base/config.h"
#include "collimate/base/error.h"

namespace collimate::cli {
namespace {

using testing::ElementsAre;
using testing::StartsWith;

struct FlagOptions : base::Section {
  base::Option<double> top_p{this, "top_p", 1.0, "", "", base::above(0.0)};
  base::Option<bool> greedy{this, "greedy", false, "", ""};
  base::Option<nlohmann::json> bias{this, "bias", nlohmann::json::object(), "", ""};
  base::Option<std::vector<int64_t>> ids{this, "ids", {}, "", ""};
  base::Option<std::vector<std::string>> stop{this, "stop", {}, "", ""};
  base::Option<std::string> name{this, "name", "", "", ""};
  base::Option<std::optional<int64_t>> seed{this, "seed", 5, "", ""};
};

FlagOptions flags(const Arguments& arguments) {
  FlagOptions options;
  CLI::App app{"reads flags", "test"};
  add_flags(app, options);
  EXPECT_TRUE(parse(app, arguments));
  return options;
}

std::string error_of(const Arguments& arguments) {
  try {
    flags(arguments);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Flags, ValuesAreReadAsThoseOfSet) {
  struct RunOptions : base::Section {
    base::Nested<FlagOptions> run{this, "run", ""};
  };
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{{"top_p", ".5"},
                                                                                   {"top_p", "1e-1"},
                                                                                   {"top_p", "1"},
                                                                                   {"greedy", "True"},
                                                                                   {"bias", "{13: 1, 7: -.5}"},
                                                                                   {"bias", "{\"13\": 1}"},
                                                                                   {"ids", "3"},
                                                                                   {"ids", "[3, 4]"},
                                                                                   {"seed", "null"},
                                                                                   {"seed", "7"}}) {
    RunOptions set;
    base::apply(base::parse_config("", "run.yaml", {"run." + key + "=" + value}), set);
    std::string flag = "--" + key;
    std::replace(flag.begin(), flag.end(), '_', '-');
    EXPECT_EQ(base::resolved_config(flags({flag, value})), base::resolved_config(FlagOptions(set.run)))
        << flag << ' ' << value;
  }
}

TEST(Flags, TextsStandAsTheyAre) {
  EXPECT_THAT(flags({"--stop", "[INST]"}).stop.get(), ElementsAre("[INST]"));
  EXPECT_THAT(flags({"--stop", "#"}).stop.get(), ElementsAre("#"));
  EXPECT_THAT(flags({"--stop", "a: b"}).stop.get(), ElementsAre("a: b"));
  EXPECT_THAT(flags({"--stop", "[\"a\", \"b\"]"}).stop.get(), ElementsAre("a", "b"));
  EXPECT_EQ(flags({"--name", "12"}).name, "12");
}

TEST(Flags, ErrorsNameTheFlag) {
  EXPECT_EQ(error_of({"--top-p", "0"}), "[--top-p] expected top_p to be above 0, got 0.0");
  EXPECT_EQ(error_of({"--top-p", "half"}), "[--top-p] expected top_p to be a number, got \"half\"");
  EXPECT_THAT(error_of({"--bias", "{3: 1"}), StartsWith("[--bias] expected valid YAML, got "));
}

}  // namespace
}  // namespace collimate::cli

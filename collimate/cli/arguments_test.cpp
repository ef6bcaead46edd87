#include "collimate/cli/arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "tests/support/base/error_of.h"

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
  return base::message_of([&] { flags(arguments); });
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
  EXPECT_THAT(flags({"--stop", "[INST] [/INST]"}).stop.get(), ElementsAre("[INST] [/INST]"));
  EXPECT_THAT(flags({"--stop", "[a b], [c]"}).stop.get(), ElementsAre("[a b], [c]"));
  EXPECT_THAT(flags({"--stop", "['"}).stop.get(), ElementsAre("['"));
  EXPECT_THAT(flags({"--stop", "[']"}).stop.get(), ElementsAre("[']"));
  EXPECT_EQ(flags({"--name", "12"}).name, "12");
  EXPECT_EQ(flags({"--name", "[a, b]"}).name, "[a, b]");
}

TEST(Flags, ListsOfTextsAreThoseOfJsonAndYaml) {
  EXPECT_THAT(flags({"--stop", "[\"a\", \"b\"]"}).stop.get(), ElementsAre("a", "b"));
  EXPECT_THAT(flags({"--stop", "[was, there]"}).stop.get(), ElementsAre("was", "there"));
  EXPECT_THAT(flags({"--stop", "['was', 'there']"}).stop.get(), ElementsAre("was", "there"));
  EXPECT_THAT(flags({"--stop", "['[INST]']"}).stop.get(), ElementsAre("[INST]"));
  EXPECT_THAT(flags({"--stop", "['a]', \"\\\"],\", it's, 'i''s']"}).stop.get(),
              ElementsAre("a]", "\"],", "it's", "i's"));
  EXPECT_THAT(flags({"--stop", "[01, \"a, b\"]"}).stop.get(), ElementsAre("01", "a, b"));
  EXPECT_EQ(error_of({"--stop", "[a: b, c]"}), "[--stop] expected stop.0 to be a string, got a mapping");
}

TEST(Flags, ErrorsNameTheFlag) {
  EXPECT_EQ(error_of({"--top-p", "0"}), "[--top-p] expected top_p to be above 0, got 0.0");
  EXPECT_EQ(error_of({"--top-p", "half"}), "[--top-p] expected top_p to be a number, got \"half\"");
  EXPECT_THAT(error_of({"--bias", "{3: 1"}), StartsWith("[--bias] expected valid YAML, got "));
}

TEST(Arguments, ErrorsGiveTheNearestThatIsRight) {
  const auto refused = [](const Arguments& arguments) -> std::string {
    CLI::App app{"reads numbers", "test"};
    int rows = 0, bound = 0;
    std::string file;
    app.add_option("FILE", file, "")->required();
    app.add_option("--rows", rows, "")->check(at_least(1));
    app.add_option("--bound", bound, "")->check(from_to(0, 16));
    return base::message_of([&] { parse(app, arguments); });
  };
  EXPECT_EQ(refused({"f", "--bound", "17"}), "[--bound] expected 0 to 16, got 17; try 16");
  EXPECT_EQ(refused({"f", "--rows", "-5"}), "[--rows] expected 1 or more, got -5; try 1");
  EXPECT_EQ(refused({"f", "--rows", "x"}), "[--rows] expected 1 or more, got x; try collimate test --help");
  EXPECT_EQ(refused({"f", "--rows", "1.6"}), "[--rows] expected a whole number, got '1.6'; try 2");
  EXPECT_EQ(refused({"f", "--row", "1"}), "[collimate test] expected arguments that it knows, got '--row'; try --rows");
  EXPECT_EQ(refused({"f", "--rows", "1", "--rows", "2"}), "[--rows] expected one value, got 2; try one of them");
  EXPECT_EQ(refused({}), "[collimate test] expected FILE, got none; try collimate test --help");
}

TEST(Arguments, AWordForAKeyOfTheConfigLeadsToSet) {
  const auto remedy = [](const Arguments& arguments, const std::string& option) {
    CLI::App app{"reads a config", "test"};
    std::string file;
    std::vector<std::string> values;
    app.add_option("CONFIG", file, "");
    app.add_option(option, values, "")->take_all();
    const std::string message = base::message_of([&] { parse(app, arguments); });
    return message.substr(message.find("; try ") + 6);
  };
  EXPECT_EQ(remedy({"a.yaml", "--lr", "1e-3"}, "--set"), "--set train.learning_rate=VALUE");
  EXPECT_EQ(remedy({"a.yaml", "--num-train-epochs=3"}, "--set"), "--set run.epochs=VALUE");
  EXPECT_EQ(remedy({"a.yaml", "--samples-per-prompt", "4"}, "--set"), "--set rollout.samples_per_prompt=VALUE");
  EXPECT_EQ(remedy({"a.yaml", "train.learning_rate=1"}, "--set"), "--set train.learning_rate=1");
  EXPECT_EQ(remedy({"--config", "a.yaml"}, "--set"), "the file alone, without --config");
  EXPECT_EQ(remedy({"a.yaml", "hello"}, "--prompt"), "--prompt 'hello'");
  EXPECT_EQ(remedy({"a.yaml", "--nowhere"}, "--set"), "collimate test --help");
}

TEST(Arguments, AFileToWriteHasADirectory) {
  require_folder("--output", "");
  require_folder("--output", "plan.yaml");
  require_folder("--output", "/tmp/plan.yaml");
  EXPECT_EQ(base::message_of([&] { require_folder("--output", "/tmp/no/such/plan.yaml"); }),
            "[--output] expected a file in a directory that exists, got '/tmp/no/such/plan.yaml'; "
            "try /tmp/plan.yaml");
}

TEST(Arguments, AFileToWriteIsNoFileThatIsRead) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / fmt::format("outputs-{}", getpid());
  fs::create_directories(folder);
  const fs::path config = folder / "run.yaml", link = folder / "link.yaml";
  std::ofstream(config) << "recipe: grpo\n";
  fs::create_symlink(config, link);
  const auto refused = [&](const std::vector<NamedFile>& written) -> std::string {
    return base::message_of([&] { check_outputs(written, {{"the config", config}, {"the file of --constants", ""}}); });
  };
  EXPECT_EQ(refused({{"--output", folder / "plan.yaml"}, {"--html", ""}}), "");
  for (const fs::path& same : {config, link, folder / "." / "run.yaml"})
    EXPECT_EQ(refused({{"--output", ""}, {"--html", same}}),
              fmt::format("[--html] expected a file that is not read, got '{}', the config; try another file",
                          same.string()));
  EXPECT_EQ(refused({{"--output", folder / "new"}, {"--html", folder / "." / "new"}}),
            fmt::format("[--html] expected a file of its own, got '{}', which --output writes; try another file",
                        (folder / "." / "new").string()));
  EXPECT_NE(refused({{"--trace", folder / "none" / "plan.yaml"}}), "");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace collimate::cli

#include "collimate/recipe/other_names.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/recipe/config.h"

namespace collimate::recipe {
namespace {

std::string error_of(const std::string& yaml) {
  Config config;
  try {
    base::apply(base::parse_config("recipe: grpo\n" + yaml, "a.yaml"), config);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(OtherNames, AreNamedByOurs) {
  EXPECT_EQ(error_of("train: {per_device_train_batch_size: 4}\n"),
            "[a.yaml:2] expected a key of section train, got \"per_device_train_batch_size\"; try "
            "\"train.samples_per_update\": rows of an optimizer step on all devices together");
  EXPECT_EQ(error_of("num_train_epochs: 3\n"),
            "[a.yaml:2] expected a key of the configuration, got \"num_train_epochs\"; try \"run.epochs\"");
  EXPECT_THAT(error_of("train: {epochs: 3}\n"), testing::HasSubstr("try \"train.ppo_epochs\": passes over"));
}

TEST(OtherNames, LeadToKeysThatExist) {
  std::vector<base::OptionInfo> options;
  Config().describe_section("", options);
  std::set<std::string> keys;
  for (const base::OptionInfo& option : options) keys.insert(option.path);
  std::set<std::string> names;
  for (const OtherName& other : other_names()) {
    EXPECT_TRUE(names.insert(other.name).second) << other.name << " stands twice";
    std::string key = other.key;
    if (key.starts_with("--")) continue;
    for (const std::string role : {"policy", "reward", "reference"})
      if (key.starts_with("models." + role + ".")) key.replace(7, role.size(), "<name>");
    EXPECT_TRUE(keys.contains(key)) << other.key;
  }
}

}  // namespace
}  // namespace collimate::recipe

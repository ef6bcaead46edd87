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

std::string loaded(const nlohmann::json& values, const std::vector<std::string>& sets = {}) {
  try {
    load_values(values, sets);
  } catch (const base::InputError& error) {
    return error.what();
  }
  return "";
}

TEST(OtherNames, AreFoundAtAnyDepth) {
  const auto expected = [](const std::string& path, const std::string& remedy) {
    return testing::HasSubstr(fmt::format("got \"{}\"; try {}", path, remedy));
  };
  const std::string verl =
      loaded({{"actor_rollout_ref", {{"rollout", {{"n", 8}}}, {"actor", {{"optim", {{"lr", 1e-6}}}}}}},
              {"critic", {{"optim", {{"lr", 1e-5}}}}},
              {"algorithm", {{"kl_ctrl", {{"kl_coef", 0.1}}}}},
              {"trainer", {{"total_epochs", 1}, {"nowhere", 1}}}});
  EXPECT_THAT(verl, expected("actor_rollout_ref.rollout.n", "\"rollout.samples_per_prompt\""));
  EXPECT_THAT(verl, expected("actor_rollout_ref.actor.optim.lr", "\"train.learning_rate\""));
  EXPECT_THAT(verl, expected("critic.optim.lr", "\"train.value_learning_rate\""));
  EXPECT_THAT(verl, expected("trainer.total_epochs", "\"run.epochs\""));
  EXPECT_THAT(verl, expected("kl_ctrl.kl_coef", "\"algorithm.kl_coefficient\""));
  EXPECT_THAT(verl, testing::HasSubstr("a key of section algorithm"));
  EXPECT_EQ(std::ranges::count(verl, '\n'), 4);
}

TEST(OtherNames, AreNamedBeforeARecipeIsMissed) {
  const std::string factory = loaded({{"stage", "sft"}, {"cutoff_len", 2048}, {"packing", true}});
  EXPECT_THAT(factory, testing::HasSubstr("got \"stage\"; try \"recipe\""));
  EXPECT_THAT(factory, testing::HasSubstr("got \"packing\"; try leaving it out: rows are always packed"));
  EXPECT_THAT(loaded(nlohmann::json::object(), {"actor_rollout_ref.rollout.n=8"}),
              testing::HasSubstr("[--set actor_rollout_ref.rollout.n] expected a key of the configuration"));
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
    if (key.starts_with("--") || key.empty()) continue;
    for (const std::string role : {"policy", "reward", "reference", "value"})
      if (key.starts_with("models." + role + ".")) key.replace(7, role.size(), "<name>");
    EXPECT_TRUE(keys.contains(key)) << other.key;
  }
}

}  // namespace
}  // namespace collimate::recipe

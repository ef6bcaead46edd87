#include <gtest/gtest.h>

#include <fstream>

#include "collimate/base/config.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::base {
namespace {

struct NamedModel : Section {
  Option<std::string> path{this, "path", "", "", "a directory"};
  Option<std::string> chat_template{this, "chat_template", "auto", "", "the template"};
};
struct SetOfModels : Section {
  SectionMap<NamedModel> models{this, "models", "the models", "path"};
};

// As "path template" of the model "policy".
std::string policy_of(const SetOfModels& options) {
  const NamedModel& policy = *options.models.find("policy");
  return policy.path.get() + " " + policy.chat_template.get();
}

TEST(ScalarSection, KeepsItsScalarBesideAKeyThatIsSet) {
  const auto read_models = [](const std::string& yaml, const std::vector<std::string>& sets) {
    SetOfModels options;
    apply(parse_config(yaml, "config.yaml", sets, &options), options);
    return policy_of(options);
  };
  const std::string set = "models.policy.chat_template=chatml";
  EXPECT_EQ(read_models("models: {policy: start}", {set}), "start chatml");
  EXPECT_EQ(read_models("models:\n  policy: '1'", {set}), "1 chatml");
  EXPECT_EQ(read_models("models: {}", {"models.policy=start", set}), "start chatml");
  EXPECT_EQ(read_models("models: {policy: start}", {set, "models.policy=other"}), "other auto") << "the last one wins";
  EXPECT_EQ(read_models("models: {policy: start}", {"models.policy.path=other"}), "other auto");
}

TEST(ScalarSection, IsMergedWithTheOneThatIsIncluded) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream(directory.path(name)) << text;
  };
  write("base.yaml", "models: {policy: start}");
  write("own.yaml", "include: base.yaml\nmodels: {policy: {chat_template: chatml}}");
  write("reverse.yaml", "include: own.yaml\nmodels: {policy: other}");
  const auto load_models = [&](const std::string& name) {
    SetOfModels options;
    apply(load_config(directory.path(name), {}, &options), options);
    return policy_of(options);
  };
  EXPECT_EQ(load_models("own.yaml"), "start chatml");
  EXPECT_EQ(load_models("reverse.yaml"), "other chatml");
}

}  // namespace
}  // namespace collimate::base

#include "collimate/host/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "collimate/base/error.h"
#include "collimate/host/environment.h"
#include "collimate/host/hub_download.h"
#include "tests/support/host/temp_directory.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::EndsWith, testing::HasSubstr;

constexpr const char* kVariables[] = {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"};

class HubCache : public TempDirectory {
 protected:
  void SetUp() override {
    TempDirectory::SetUp();
    for (const char* name : kVariables) ::unsetenv(name);
    ::setenv("HF_HUB_CACHE", directory_.c_str(), 1);
    model_ = directory_ / "models--org--some-model";
  }
  void TearDown() override {
    for (const char* name : kVariables) ::unsetenv(name);
    TempDirectory::TearDown();
  }
  // A snapshot of org/some-model, which that branch or tag names.
  fs::path snapshot(const std::string& commit, const std::string& reference = "main") {
    const fs::path named = model_ / "refs" / reference;
    fs::create_directories(named.parent_path());
    std::ofstream(named) << commit << "\n";
    return unnamed(commit);
  }
  fs::path unnamed(const std::string& commit) {
    fs::create_directories(model_ / "snapshots" / commit);
    return model_ / "snapshots" / commit;
  }

  fs::path model_;  // org/some-model in the cache
};

TEST_F(HubCache, AModelOfTheCacheIsItsSnapshot) {
  EXPECT_EQ(model_directory("org/some-model"), "org/some-model");
  const fs::path held = snapshot("0a1b");
  EXPECT_EQ(model_directory("org/some-model"), held.string());
  EXPECT_EQ(model_directory("org/other"), "org/other");
  fs::remove_all(held);
  EXPECT_EQ(model_directory("org/some-model"), "org/some-model") << "an unfinished download";
}

TEST_F(HubCache, OldModelsHaveNoOrganisation) {
  const fs::path held = directory_ / "models--gpt2/snapshots/0a1b";
  fs::create_directories(held);
  fs::create_directories(directory_ / "models--gpt2/refs");
  std::ofstream(directory_ / "models--gpt2/refs/main") << "0a1b";
  EXPECT_EQ(model_directory("gpt2"), held.string());
  EXPECT_EQ(model_directory("gpt3"), "gpt3");
  EXPECT_NE(hub_remedy("gpt3").find("hf download gpt3"), std::string::npos);
}

TEST_F(HubCache, ARevisionIsABranchATagOrACommit) {
  const fs::path first = snapshot("0a1b2c3d"), second = snapshot("0a1b77aa", "v1.0"),
                 request = snapshot("ffee", "refs/pr/1");
  for (const std::string name : {"", "@main", "@0a1b2c3d", "@0a1b2"})
    EXPECT_EQ(model_directory("org/some-model" + name), first.string()) << name;
  EXPECT_EQ(model_directory("org/some-model@v1.0"), second.string());
  EXPECT_EQ(model_directory("org/some-model@0a1b7"), second.string());
  EXPECT_EQ(model_directory("org/some-model@refs/pr/1"), request.string());
  for (const std::string name : {"org/some-model@0a1b", "org/some-model@ffe", "org/some-model@v2"})
    EXPECT_EQ(model_directory(name), name);
}

TEST_F(HubCache, ErrorsNameTheRevisionsThatAreThere) {
  snapshot("0a1b2c3d", "v1.0");
  EXPECT_THAT(hub_remedy("org/some-model"),
              EndsWith("hf download org/some-model: the local cache " + directory_.string() +
                       " has of that model only org/some-model@v1.0"));
  unnamed("0a1b77aa");
  EXPECT_THAT(hub_remedy("org/some-model@refs/pr/1"),
              AllOf(HasSubstr("or hf download org/some-model --revision refs/pr/1: "),
                    EndsWith(" only org/some-model@v1.0, org/some-model@0a1b77aa")));
  EXPECT_EQ(hub_remedy("org/some-model@0a1b"),
            "more of the hash, which begins several commits of the local cache: 0a1b2c3d, 0a1b77aa");
}

// hub_download.py marks a commit until all of it is there.
TEST_F(HubCache, AnUnfinishedCommitIsNotThere) {
  const fs::path held = snapshot("0a1b2c3d");
  fs::create_directories(model_ / "unfinished");
  std::ofstream(model_ / "unfinished/0a1b2c3d") << "";
  for (const std::string name : {"org/some-model", "org/some-model@0a1b2c3d"}) EXPECT_EQ(model_directory(name), name);
  EXPECT_THAT(hub_remedy("org/some-model"), EndsWith("does not have it"));
}

TEST_F(HubCache, OtherNamesStay) {
  snapshot("0a1b");
  for (const char* name :
       {"", ".model", "/org/some-model", "./org/some-model", "../org", "org/", "a/b/c", "org/some-model@",
        "org/some-model@../main", "org/some-model@a//b", "org/some-model@v 1", "@main"}) {
    EXPECT_EQ(model_directory(name), name);
    EXPECT_EQ(hub_remedy(name), "") << name;
  }
}

// No file can have so long a name, so it is looked for at the hub, for which nothing is there to ask.
TEST_F(HubCache, ANameTooLongForAFileIsAnInputError) {
  const std::string before = environment_variable("COLLIMATE_PYTHON");
  ::setenv("COLLIMATE_PYTHON", "/absent/python3", 1);
  EXPECT_THROW(model_directory(std::string(300, 'a'), true), base::InputError);
  if (before.empty())
    ::unsetenv("COLLIMATE_PYTHON");
  else
    ::setenv("COLLIMATE_PYTHON", before.c_str(), 1);
}

TEST_F(HubCache, IsWhereTheEnvironmentSays) {
  const std::string home = std::getenv("HOME"), below[] = {"", "", "/hub", "/huggingface/hub"};
  for (const char* name : kVariables) ::setenv(name, "/nowhere", 1);
  for (size_t i = 0; i < std::size(kVariables); ++i) {
    ::setenv(kVariables[i], "/somewhere", 1);
    EXPECT_EQ(hub_cache(), "/somewhere" + below[i]) << kVariables[i];
    ::setenv(kVariables[i], "~/away", 1);
    EXPECT_EQ(hub_cache(), home + "/away" + below[i]) << kVariables[i];
    ::unsetenv(kVariables[i]);
  }
  EXPECT_EQ(hub_cache(), home + "/.cache/huggingface/hub");
  EXPECT_EQ(hub_remedy("org/some-model"),
            "--download (it needs PyPI's huggingface_hub), or hf download org/some-model: "
            "the local cache " +
                hub_cache().string() + " does not have it");
}

}  // namespace
}  // namespace collimate::host

#include "collimate/host/hub_cache.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/host/temp_directory.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

class HubCache : public TempDirectory {
 protected:
  void SetUp() override {
    TempDirectory::SetUp();
    for (const char* name : {"HF_HUB_CACHE", "HF_HOME"}) ::unsetenv(name);
    ::setenv("HF_HUB_CACHE", directory_.c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("HF_HUB_CACHE");
    TempDirectory::TearDown();
  }
  // A snapshot of org/model, which `main` names.
  fs::path snapshot(const std::string& commit) {
    const fs::path model = directory_ / "models--org--some-model";
    fs::create_directories(model / "snapshots" / commit);
    fs::create_directories(model / "refs");
    std::ofstream(model / "refs/main") << commit << "\n";
    return model / "snapshots" / commit;
  }
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

TEST_F(HubCache, OtherNamesStay) {
  snapshot("0a1b");
  for (const char* name : {"", ".model", "/org/some-model", "./org/some-model", "../org", "org/", "a/b/c"}) {
    EXPECT_EQ(model_directory(name), name);
    EXPECT_EQ(hub_remedy(name), "") << name;
  }
}

TEST_F(HubCache, IsWhereTheEnvironmentSays) {
  ::unsetenv("HF_HUB_CACHE");
  ::setenv("HF_HOME", "/somewhere", 1);
  EXPECT_EQ(hub_cache(), "/somewhere/hub");
  ::unsetenv("HF_HOME");
  EXPECT_EQ(hub_cache(), fs::path(std::getenv("HOME")) / ".cache/huggingface/hub");
  EXPECT_EQ(hub_remedy("org/some-model"),
            "--download, or hf download org/some-model: nothing is downloaded unasked, and the local cache " +
                hub_cache().string() + " does not have it");
}

}  // namespace
}  // namespace collimate::host

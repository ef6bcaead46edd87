#include "collimate/host/base_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "collimate/base/error.h"
#include "tests/support/host/temp_directory.h"

namespace collimate::host {
namespace {

namespace fs = std::filesystem;

class BaseModel : public TempDirectory {
 protected:
  void SetUp() override {
    TempDirectory::SetUp();
    ::setenv("HF_HUB_CACHE", (directory_ / "hub").c_str(), 1);
  }
  void TearDown() override {
    ::unsetenv("HF_HUB_CACHE");
    TempDirectory::TearDown();
  }
  // A directory of adapters of that model.
  std::string adapters_of(const std::string& name) {
    const fs::path made = directory_ / "adapter";
    fs::create_directories(made);
    std::ofstream(made / "adapter_config.json") << R"({"base_model_name_or_path": ")" << name << "\"}";
    return made.string();
  }
};

TEST_F(BaseModel, ADirectoryWithoutAdaptersIsItsOwn) {
  EXPECT_EQ(base_directory(directory_.string()), directory_.string());
  EXPECT_EQ(base_directory("/nowhere"), "/nowhere");
  EXPECT_FALSE(holds_adapters(directory_.string()));
}

TEST_F(BaseModel, AdaptersNameADirectoryOrAHubModel) {
  const fs::path model = directory_ / "model", held = directory_ / "hub/models--org--model/snapshots/0a1b";
  fs::create_directories(model);
  EXPECT_EQ(base_directory(adapters_of(model.string())), model.string());
  EXPECT_TRUE(holds_adapters((directory_ / "adapter").string()));
  EXPECT_THROW(base_directory(adapters_of("org/model")), base::InputError);
  fs::create_directories(held);
  fs::create_directories(directory_ / "hub/models--org--model/refs");
  std::ofstream(directory_ / "hub/models--org--model/refs/main") << "0a1b";
  EXPECT_EQ(base_directory(adapters_of("org/model")), held.string());
  EXPECT_EQ(base_model_name(adapters_of("org/model")), "org/model");
}

// Older tools write the model's config.json beside its adapters.
TEST_F(BaseModel, AConfigAloneIsNoWholeModel) {
  const fs::path model = directory_ / "model", adapters = adapters_of(model.string());
  fs::create_directories(model);
  std::ofstream(adapters / "config.json") << "{}";
  EXPECT_EQ(base_directory(adapters.string()), model.string());
  for (const char* whole : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"}) {
    std::ofstream(adapters / whole) << "";
    EXPECT_THROW(holds_adapters(adapters.string()), base::InputError) << whole;
    fs::remove(adapters / whole);
  }
}

}  // namespace
}  // namespace collimate::host

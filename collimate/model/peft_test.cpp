#include "collimate/model/peft.h"

#include <nlohmann/json.hpp>
#include <set>

#include "collimate/base/at.h"
#include "collimate/host/atomic_file.h"
#include "collimate/model/safetensors.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::tiny_shape;
using testing::tiny_weights;

class Peft : public testing::InDirectory {
 protected:
  nlohmann::json config() const { return nlohmann::json::parse(host::read_file(directory_ + "/adapter_config.json")); }
};

TEST_F(Peft, FilesSayWhatPeftReads) {
  const LoraOptions lora{.rank = 4, .alpha = 6, .targets = {"q_proj", "down_proj"}};
  auto weights = tiny_weights(tiny_shape("llama"), {.trained = true, .lora = lora});
  save_peft(*weights, directory_, "some/model");
  const nlohmann::json written = config();
  EXPECT_EQ(written.at("peft_type"), "LORA");
  EXPECT_EQ(written.at("task_type"), "CAUSAL_LM");
  EXPECT_EQ(written.at("base_model_name_or_path"), "some/model");
  EXPECT_EQ(written.at("r"), 4);
  EXPECT_EQ(written.at("lora_alpha").dump(), "6");
  EXPECT_EQ(written.at("use_rslora"), false);
  EXPECT_EQ(written.at("target_modules"), nlohmann::json::array({"q_proj", "down_proj"}));
  EXPECT_TRUE(written.at("modules_to_save").is_null());
  EXPECT_EQ(written.at("fan_in_fan_out"), false);
  const SafetensorsFile file(directory_ + "/adapter_model.safetensors");
  ASSERT_EQ(file.entries().size(), 8U);
  for (const TensorEntry& entry : file.entries()) {
    const int index = weights->index_of(entry.name);
    ASSERT_GE(index, 0) << entry.name;
    EXPECT_EQ(entry.sizes, base::at(weights->params(), index).sizes) << entry.name;
    std::vector<float> values(static_cast<size_t>(entry.count()));
    read_floats(entry, directory_, values);
    const auto own = weights->values(index);
    EXPECT_EQ(values, std::vector<float>(own.begin(), own.end())) << entry.name;
  }
}

TEST_F(Peft, Gpt2sLayersAreConv1d) {
  const WeightsOptions options{.trained = true, .lora = {.rank = 2, .alpha = 0.5, .rslora = true}};
  save_peft(*tiny_weights(tiny_shape("gpt2"), options), directory_, "gpt2");
  const nlohmann::json written = config();
  EXPECT_EQ(written.at("fan_in_fan_out"), true);
  EXPECT_EQ(written.at("lora_alpha").dump(), "0.5");
  EXPECT_EQ(written.at("use_rslora"), true);
  EXPECT_EQ(written.at("target_modules"), nlohmann::json::array({"c_attn", "c_proj", "c_fc"}));
}

TEST_F(Peft, AScoreHeadIsSavedWithTheAdapters) {
  shape::ModelShape shape = tiny_shape("llama");
  shape.head = shape::Head::kScore;
  save_peft(*tiny_weights(shape, {.trained = true, .lora = {.rank = 2}}), directory_, "judge");
  EXPECT_EQ(config().at("task_type"), "SEQ_CLS");
  EXPECT_EQ(config().at("modules_to_save"), nlohmann::json::array({"score"}));
  const SafetensorsFile file(directory_ + "/adapter_model.safetensors");
  std::set<std::string> names;
  for (const TensorEntry& entry : file.entries()) names.insert(entry.name);
  EXPECT_TRUE(names.contains("base_model.model.score.weight"));
  EXPECT_EQ(names.size(), 2 * 14 + 1U);
}

// The whole model has them merged, under the names and sizes that it had.
TEST_F(Peft, TheModelIsWrittenWithAdaptersMerged) {
  for (const char* family : {"llama", "gpt2"})
    for (const int64_t shard_bytes : {int64_t{1} << 30, int64_t{6000}}) {
      const WeightsOptions options{.trained = true, .lora = {.rank = 4, .alpha = 6}};
      auto weights = tiny_weights(tiny_shape(family), options);
      save_huggingface(*weights, directory_, {.shard_bytes = shard_bytes});
      const auto back = load_huggingface(directory_, "", {}, {});
      std::vector<float> memory;
      int changed = 0;
      for (size_t i = 0; i < back->params().size(); ++i) {
        const int index = static_cast<int>(i);
        const auto merged = merged_values(*weights, index);
        const auto read = back->values(index), own = weights->values(index);
        EXPECT_TRUE(std::equal(read.begin(), read.end(), merged.begin())) << back->params()[i].name;
        changed += std::equal(read.begin(), read.end(), own.begin()) ? 0 : 1;
      }
      EXPECT_EQ(changed, family == std::string("gpt2") ? 8 : 14);
      EXPECT_EQ(back->params().size(), weights->own_params());
    }
}

}  // namespace
}  // namespace collimate::model

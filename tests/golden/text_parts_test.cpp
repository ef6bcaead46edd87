// Language models of models that read images too, against logits of texts under the whole (make_text_parts.py).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "collimate/model/peft.h"
#include "collimate/model/peft_adapters.h"
#include "collimate/shape/text_part.h"
#include "tests/golden/peft_files.h"

namespace collimate::golden {
namespace {

using nlohmann::json;

class TextParts : public model::testing::InDirectory {
 protected:
  // A case's directory: the language model's tensors by the formula, zeros in all others.
  void write(const json& one) const {
    std::filesystem::create_directories(directory_);
    std::vector<model::testing::RawTensor> tensors;
    for (const auto& [name, tensor] : one.at("tensors").items()) {
      const auto alone = tensor.at(0).get<std::string>();
      const auto sizes = tensor.at(1).get<std::vector<int64_t>>();
      int64_t count = 1;
      for (const int64_t size : sizes) count *= size;
      std::vector<float> values(static_cast<size_t>(count));
      if (!alone.empty())
        for (int64_t i = 0; i < count; ++i) values[static_cast<size_t>(i)] = static_cast<float>(wave(alone, i));
      tensors.push_back({name, "F32", sizes, model::testing::bytes_of(values)});
    }
    model::testing::write_raw_safetensors(directory_ + "/model.safetensors", tensors);
    std::ofstream(directory_ + "/config.json") << one.at("config");
  }
};

TEST_F(TextParts, LogitsAreThoseOfAnotherImplementation) {
  const json cases = json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/text_parts.json"));
  for (const json& one : cases) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    write(one);
    const auto got = logits_of(directory_, one);
    EXPECT_LT(furthest(got, one), 3e-5F);
    const auto weights = model::load_huggingface(directory_, "lm", {}, {});
    model::save_huggingface(*weights, directory_ + "/saved");
    EXPECT_EQ(logits_of(directory_ + "/saved", one), got) << "saved, it stands alone";
    EXPECT_EQ(shape::read_model_shape(directory_ + "/saved").text_part_of, "");
  }
}

// Adapters that PEFT wrote for the whole are merged, or trained on and written so that they fit the whole again.
TEST_F(TextParts, AdaptersOfTheWholeAreThoseOfTheLanguageModel) {
  const json cases = json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/text_parts.json"));
  const std::string adapter = directory_ + "/adapter";
  size_t trained = 0;
  for (const json& one : json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/peft_text_parts.json"))) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    write(*std::ranges::find_if(cases, [&](const json& whole) { return whole.at("name") == one.at("name"); }));
    write_adapters(adapter, directory_, one);
    EXPECT_LT(furthest(logits_of(adapter, one), one), 3e-5F);
    const model::WeightsOptions on{.trained = true, .lora = model::PeftAdapters(adapter).options()};
    const auto weights = model::load_huggingface(adapter, "lm", on, {});
    model::Model beside(weights, {});
    const auto ids = one.at("ids").get<std::vector<int32_t>>();
    EXPECT_LT(furthest(model::testing::to_vector(beside.logits(beside.forward(model::testing::pack({ids})))), one),
              3e-5F);
    model::save_peft(*weights, adapter, directory_);
    const auto file = model::open_tensor_file(adapter + "/adapter_model.safetensors");
    for (const model::TensorEntry& entry : file->entries())
      EXPECT_TRUE(one.at("tensors").contains(entry.name)) << entry.name;
    const json written = json::parse(std::ifstream(adapter + "/adapter_config.json"));
    const std::regex targets(written.at("target_modules").get<std::string>());
    for (const auto& [name, sizes] : one.at("tensors").items()) {
      if (name.find(".lora_A.") == std::string::npos) continue;
      const std::string prefix = "base_model.model.",
                        module = name.substr(prefix.size(), name.find(".lora_A.") - prefix.size());
      EXPECT_EQ(std::regex_match(module, targets), !std::regex_search(name, std::regex("vision|visual"))) << module;
    }
    const model::WeightsOptions again{.trained = true, .lora = model::PeftAdapters(adapter).options()};
    EXPECT_EQ(model::load_huggingface(adapter, "lm", again, {})->checksum(), weights->checksum());
    ++trained;
  }
  EXPECT_EQ(trained, 4U);
}

// A tensor that is of no known part is not passed over.
TEST_F(TextParts, OtherTensorsAreNamed) {
  const json cases = json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/text_parts.json"));
  json one = cases.front();
  one["tensors"]["language_model.model.layers.0.extra.weight"] = {"", {3}};
  write(one);
  EXPECT_THROW(model::load_huggingface(directory_, "lm", {}, {}), base::InputError);
}

}  // namespace
}  // namespace collimate::golden

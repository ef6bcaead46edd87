// Language models of models that read images too, against logits of texts under the whole (make_text_parts.py).
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "collimate/model/huggingface_check.h"
#include "collimate/shape/text_part.h"
#include "tests/golden/family_weights.h"
#include "tests/support/model/raw_safetensors.h"
#include "tests/support/model/tiny_weights.h"

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
  static std::vector<float> logits_of(const std::string& directory, const json& one) {
    model::check_huggingface(directory, "lm", {});
    model::Model decoder(model::load_huggingface(directory, "lm", {}, {}), {});
    const auto ids = one.at("ids").get<std::vector<int32_t>>();
    return model::testing::to_vector(decoder.logits(decoder.forward(model::testing::pack({ids}))));
  }
};

TEST_F(TextParts, LogitsAreThoseOfAnotherImplementation) {
  const json cases = json::parse(std::ifstream(COLLIMATE_SOURCE_DIR "/tests/golden/text_parts.json"));
  for (const json& one : cases) {
    SCOPED_TRACE(one.at("name").get<std::string>());
    write(one);
    const auto got = logits_of(directory_, one), wanted = one.at("logits").get<std::vector<float>>();
    ASSERT_EQ(got.size(), wanted.size());
    float most = 0;
    for (size_t i = 0; i < wanted.size(); ++i) most = std::max(most, std::abs(got[i] - wanted[i]));
    EXPECT_LT(most, 3e-5F);
    const auto weights = model::load_huggingface(directory_, "lm", {}, {});
    model::save_huggingface(*weights, directory_ + "/saved");
    EXPECT_EQ(logits_of(directory_ + "/saved", one), got) << "saved, it stands alone";
    EXPECT_EQ(shape::read_model_shape(directory_ + "/saved").text_part_of, "");
  }
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

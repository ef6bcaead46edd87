#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/model/huggingface_check.h"
#include "tests/support/model/raw_safetensors.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

using testing::bf16_bytes;
using testing::bytes_of;
using testing::RawTensor;
using testing::tiny_shape;
using testing::tiny_weights;

constexpr const char* kQuantized = "model.layers.1.mlp.down_proj.weight";  // [24, 40]
constexpr const char* kScales = "model.layers.1.mlp.down_proj.weight_scale_inv";

// A llama of which one layer is in fp8: all numbers 1.5, in blocks of [16, 16].
class Quantized : public testing::InDirectory {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    auto weights = tiny_weights(tiny_shape("llama"));
    config_ = shape::to_config(weights->shape());
    config_["quantization_config"] = {{"quant_method", "fp8"}, {"weight_block_size", {16, 16}}};
    for (size_t i = 0; i < weights->params().size(); ++i) {
      const shape::ParamSpec& spec = weights->params()[i];
      const auto values = weights->values(static_cast<int>(i));
      tensors_[spec.name] = {spec.name, "BF16", spec.sizes, bf16_bytes({values.begin(), values.end()})};
    }
    tensors_[kQuantized] = {kQuantized, "F8_E4M3", {24, 40}, std::string(24 * 40, '\x3C')};
    set_scales({2, 3}, {1, 2, 3, 4, 5, 6});
  }

  void set_scales(const std::vector<int64_t>& sizes, const std::vector<float>& numbers) {
    tensors_[kScales] = {kScales, "F32", sizes, bytes_of(numbers)};
  }

  void write() const {
    std::vector<RawTensor> tensors;
    for (const auto& [name, tensor] : tensors_) tensors.push_back(tensor);
    testing::write_raw_safetensors(directory_ + "/model.safetensors", tensors);
    host::write_file_atomically(directory_ + "/config.json", config_.dump());
  }

  // Gives what loading and checking say, the directory as D and the layer as W.
  std::string error_of() const {
    write();
    try {
      check_huggingface(directory_, "", {});
      load_huggingface(directory_, "", {}, {});
    } catch (const base::InputError& error) {
      std::string text = error.what();
      for (const auto& [long_text, short_text] : {std::pair(directory_, "D"), std::pair(std::string(kQuantized), "W")})
        for (size_t at = text.find(long_text); at != std::string::npos; at = text.find(long_text))
          text.replace(at, long_text.size(), short_text);
      return text;
    }
    return "loaded";
  }

  nlohmann::json config_;
  std::map<std::string, RawTensor> tensors_;
};

TEST_F(Quantized, OtherDtypesStayBesideIt) {
  write();
  const auto loaded = load_huggingface(directory_, "", {}, {});
  const auto values = loaded->values(loaded->index_of(kQuantized));
  EXPECT_EQ(values[0], 1.5F);
  EXPECT_EQ(values[39], 1.5F * 3);
  EXPECT_EQ(values[23 * 40 + 16], 1.5F * 5);
  // The model takes the memory of the same model in fp32, which is what is planned, and is written as that.
  const auto bytes_of_packed = [](Weights& weights) {
    weights.pack_all();
    int64_t bytes = 0;
    for (const MemoryItem& item : weights.memory()) bytes += item.bytes;
    return bytes;
  };
  EXPECT_EQ(bytes_of_packed(*loaded), bytes_of_packed(*tiny_weights(tiny_shape("llama"), {})));
  save_huggingface(*loaded, directory_);
  EXPECT_EQ(load_huggingface(directory_, "", {}, {})->checksum(), loaded->checksum());
}

TEST_F(Quantized, ScalesMayBePowersOfTwo) {
  tensors_[kScales] = {kScales, "F8_E8M0", {2, 3}, bytes_of<uint8_t>({127, 128, 126, 1, 127, 120})};
  write();
  for (const bool mapped : {false, true}) {
    const auto loaded = load_huggingface(directory_, "", {.mapped = mapped}, {});
    std::vector<float> values(24 * 40);
    loaded->read(loaded->index_of(kQuantized), 0, values);
    EXPECT_EQ(values[0], 1.5F);
    EXPECT_EQ(values[16], 3.0F);
    EXPECT_EQ(values[39], 0.75F);
    EXPECT_EQ(values[16 * 40], std::ldexp(1.5F, -126));
    EXPECT_EQ(values[23 * 40 + 39], std::ldexp(1.5F, -7));
  }
  tensors_[kQuantized] = {kQuantized, "F8_E8M0", {24, 40}, std::string(24 * 40, '\x7F')};
  tensors_.erase(kScales);
  EXPECT_EQ(error_of(), "[D W dtype] expected F32, BF16 or F16, got F8_E8M0") << "no weights";
}

TEST_F(Quantized, MethodsAreNamed) {
  EXPECT_EQ(error_of(), "loaded");
  config_["quantization_config"]["quant_method"] = "gptq";
  EXPECT_EQ(
      error_of(),
      "[D/config.json quantization_config.quant_method] expected fp8, mxfp4, or a model that is not quantized, got "
      "\"gptq\"; try the model that this one was made from");
  config_["quantization_config"] = {{"bits", 4}};
  EXPECT_NE(error_of().find("got null"), std::string::npos);
  config_.erase("quantization_config");
  EXPECT_EQ(error_of(), "[D/config.json quantization_config] expected quant_method fp8, as W is F8_E4M3, got none");
}

TEST_F(Quantized, BlockSizesAreTwoNumbers) {
  for (const nlohmann::json& sizes : nlohmann::json::array({{16}, {0, 16}, {16, -1}, "16", {16, 1.5}})) {
    config_["quantization_config"]["weight_block_size"] = sizes;
    EXPECT_EQ(error_of(),
              "[D/config.json quantization_config.weight_block_size] expected [rows, columns] from 1 on, "
              "got " +
                  sizes.dump());
  }
}

TEST_F(Quantized, ScalesFitTheirTensor) {
  set_scales({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(error_of(), "[D W_scale_inv] expected [2, 3] for blocks of 16 x 16 in [24, 40], got [3, 2]");
  config_["quantization_config"].erase("weight_block_size");
  EXPECT_EQ(error_of(), "[D W_scale_inv] expected one number, as there is no weight_block_size, got [3, 2]");
  set_scales({1}, {2});
  EXPECT_EQ(error_of(), "loaded");
  tensors_.at(kScales).dtype = "I32";
  EXPECT_EQ(error_of(), "[D W_scale_inv dtype] expected F32, BF16, F16 or F8_E8M0, got I32");
  tensors_.erase(kScales);
  EXPECT_EQ(error_of(), "[D W] expected W_scale_inv beside it, as it is F8_E4M3, got none");
}

TEST_F(Quantized, ScalesOfNothingAreSurplus) {
  tensors_[kQuantized] = {kQuantized, "BF16", {24, 40}, std::string(24 * 40 * 2, '\0')};
  EXPECT_EQ(error_of(), "[D] expected the tensors of its config.json alone, got also W_scale_inv");
}

TEST_F(Quantized, OtherDtypesAreNamedBeforeTheyAreRead) {
  tensors_[kQuantized].dtype = "F8_E5M2";
  EXPECT_EQ(error_of(), "[D W dtype] expected F32, BF16 or F16, got F8_E5M2");
}

}  // namespace
}  // namespace collimate::model

// gpt-oss checkpoints of four bits against what Hugging Face transformers reads from them (make_mxfp4.py).
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <map>
#include <numeric>

#include "collimate/model/file_tensors.h"
#include "tests/golden/quantized.h"
#include "tests/support/base/error_of.h"

namespace collimate::golden {
namespace {

TEST(Mxfp4, EveryByteIsTheTwoNumbersThatTransformersReads) {
  const json golden = golden_of("mxfp4.json");
  std::string blocks;
  std::vector<uint8_t> powers;
  std::vector<float> wanted;
  for (size_t row = 0; row < golden.at("scales").size(); ++row) {
    for (int byte = 0; byte < 256; ++byte) blocks += static_cast<char>(byte);
    for (const int power : golden.at("scales")[row]) powers.push_back(static_cast<uint8_t>(power));
    for (const int32_t bits : golden.at("values")[row]) wanted.push_back(std::bit_cast<float>(bits));
  }
  const std::string stored = bytes_of(powers);
  const TensorEntry scales{"s", "F8_E8M0", {3, 16}, std::as_bytes(std::span(stored))};
  const TensorEntry all{"w", model::kMxfp4, {3, 512}, std::as_bytes(std::span(blocks)), {&scales, 1, 32, 512}, true};
  std::vector<float> got(wanted.size());
  model::read_floats(all, "test", got);
  EXPECT_EQ(got, wanted);
  for (size_t first = 0; first < wanted.size(); first += 46) {  // as parts of mapped files are read
    const size_t count = std::min<size_t>(75, wanted.size() - first);
    std::vector<float> part(count);
    model::read_floats(model::part_of(all, first, count), "test", part);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), wanted.begin() + static_cast<std::ptrdiff_t>(first))) << first;
  }
}

// The formula of make_mxfp4.py.
std::string formula(const std::string& name, int64_t count, int64_t least, int64_t different) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i)
    bytes += static_cast<char>(least + (37 * i + std::accumulate(name.begin(), name.end(), int64_t{0})) % different);
  return bytes;
}

// Values of a tensor that is no matrix of experts, by the formula of its name in the file.
RawTensor plain_tensor(const model::FileTensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.count(); ++i) values.push_back(static_cast<float>(wave(tensor.name, i)));
  return {tensor.name, "F32", tensor.sizes, bytes_of(values)};
}

class Mxfp4Models : public model::testing::InDirectory {
 protected:
  void SetUp() override {
    json plain = golden_.at("config");
    plain.erase("quantization_config");
    for (const model::FileTensor& tensor :
         model::file_tensors(shape::param_specs(shape::parse_model_shape(plain, "mxfp4.json")))) {
      if (tensor.sizes.size() < 3) {
        tensors_[tensor.name] = plain_tensor(tensor);
        continue;
      }
      const std::vector<int64_t> sizes = {tensor.sizes[0], tensor.sizes[2], tensor.sizes[1] / 32};
      const int64_t count = sizes[0] * sizes[1] * sizes[2];
      const std::string blocks = tensor.name + "_blocks", scales = tensor.name + "_scales";
      tensors_[blocks] = {blocks, "U8", {sizes[0], sizes[1], sizes[2], 16}, formula(blocks, count * 16, 0, 256)};
      tensors_[scales] = {scales, "U8", sizes, formula(scales, count, 122, 4)};
    }
    write();
  }
  void write() const {
    std::vector<RawTensor> all;
    for (const auto& [name, tensor] : tensors_) all.push_back(tensor);
    std::filesystem::create_directories(directory_);
    model::testing::write_raw_safetensors(directory_ + "/model.safetensors", all);
    std::ofstream(directory_ + "/config.json") << golden_.at("config");
  }
  std::string error_of() const {
    write();
    return base::message_of([&] { model::check_huggingface(directory_, "lm", {}); });
  }

  json golden_ = golden_of("mxfp4.json");
  std::map<std::string, RawTensor> tensors_;
};

TEST_F(Mxfp4Models, LogitsAreThoseOfTransformersAlsoOfMappedFilesAndOfTheExport) {
  const auto wanted = golden_.at("logits").get<std::vector<float>>();
  model::check_huggingface(directory_, "lm", {});
  const auto loaded = model::load_huggingface(directory_, "lm", {}, {});
  const std::vector<float> got = logits_of_ids(loaded, golden_.at("ids"));
  EXPECT_LT(worst_difference(got, wanted),
            1.5e-4F);  // of logits up to 4; float32 of transformers is 3e-5 from its float64
  EXPECT_EQ(logits_of_ids(model::load_huggingface(directory_, "lm", {.mapped = true}, {}), golden_.at("ids")), got);

  const std::string exported = directory_ + "/exported";
  model::save_huggingface(*loaded, exported, {.dtype = "F32"});
  EXPECT_EQ(model::load_huggingface(exported, "lm", {}, {})->checksum(), loaded->checksum());
  EXPECT_FALSE(json::parse(std::ifstream(exported + "/config.json")).contains("quantization_config"));
  const model::SafetensorsFile file(exported + "/model.safetensors");
  for (const TensorEntry& entry : file.entries())
    EXPECT_EQ(entry.name.find("_blocks") == std::string::npos, true) << entry.name;
}

// Numbers of four bits and powers of two are such of bf16, and norms there are written in it too.
TEST_F(Mxfp4Models, FilesBesideBf16AreWrittenInBf16) {
  for (auto& [name, tensor] : tensors_) {
    if (tensor.dtype != "F32") continue;
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    tensor = {name, "BF16", tensor.sizes, bf16_bytes(values)};
  }
  write();
  const auto loaded = model::load_huggingface(directory_, "lm", {}, {});
  const model::FileForm form = model::form_of_files(directory_, *loaded);
  EXPECT_EQ(form.dtype, "BF16");
  model::save_huggingface(*loaded, directory_ + "/exported", form);
  EXPECT_EQ(model::load_huggingface(directory_ + "/exported", "lm", {}, {})->checksum(), loaded->checksum());
}

TEST_F(Mxfp4Models, HalvesOfAPairAreRefusedByName) {
  const auto whole = tensors_;
  const std::string up = "model.layers.0.mlp.experts.gate_up_proj";
  tensors_.erase(up + "_scales");
  EXPECT_EQ(error_of(),
            "[" + directory_ + " " + up + "_scales] expected [4, 128, 1] of U8 beside " + up + "_blocks, got none");
  tensors_ = whole;
  tensors_[up + "_blocks"].sizes = {4, 128, 16};
  EXPECT_EQ(error_of(), "[" + directory_ + " " + up + "_scales] expected [4, 128] of U8 beside " + up +
                            "_blocks, got [4, 128, 1] of U8");
  tensors_ = whole;
  tensors_.erase(up + "_blocks");
  tensors_.erase(up + "_scales");
  EXPECT_EQ(error_of(), "[" + directory_ + "] expected 37 tensors, got none named " + up);
  tensors_ = whole;
  tensors_[up + "_bias"].sizes = {2, 256};
  EXPECT_EQ(error_of(), "[" + directory_ + " " + up + "_bias] expected [4, 128], got [2, 256]");
}

}  // namespace
}  // namespace collimate::golden

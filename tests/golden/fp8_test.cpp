// fp8 checkpoints against what torch and Hugging Face transformers read from them (make_fp8.py).
#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "tests/golden/quantized.h"

namespace collimate::golden {
namespace {

json fp8_golden() { return golden_of("fp8.json"); }

std::vector<float> from_bits(const json& bits) {
  std::vector<float> values;
  for (const int32_t one : bits.get<std::vector<int32_t>>()) values.push_back(std::bit_cast<float>(one));
  return values;
}

std::span<const std::byte> span_of(const std::string& bytes) { return std::as_bytes(std::span(bytes)); }

// The values of an entry with these bytes: whole, and from `first` on as parts of mapped files are read.
std::vector<float> read(const TensorEntry& entry) {
  std::vector<float> values(static_cast<size_t>(entry.count()));
  model::read_floats(entry, "test", values);
  return values;
}

std::string every_byte() {
  std::string bytes(256, '\0');
  std::iota(bytes.begin(), bytes.end(), '\0');
  return bytes;
}

void expect_bits(const std::vector<float>& got, const std::vector<float>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(wanted[i]))
      EXPECT_TRUE(std::isnan(got[i])) << i;
    else
      EXPECT_EQ(std::bit_cast<int32_t>(got[i]), std::bit_cast<int32_t>(wanted[i])) << i;
  }
}

TEST(Fp8, EveryByteIsTheNumberThatTorchReads) {
  const std::string one = bytes_of<float>({1});
  const TensorEntry scale{"scale", "F32", {1}, span_of(one)};
  const std::string bytes = every_byte();
  expect_bits(read({"all", "F8_E4M3", {1, 256}, span_of(bytes), {&scale, 1, 256, 256}}),
              from_bits(fp8_golden().at("values")));
}

// Each scales a block of one number, which is 1.
TEST(Fp8, EveryScaleIsThePowerOfTwoThatTorchReads) {
  const auto wanted = from_bits(fp8_golden().at("powers"));
  const std::string ones(256, '\x38'), bytes = every_byte();
  const TensorEntry scales{"scales", "F8_E8M0", {1, 256}, span_of(bytes)};
  expect_bits(read({"all", "F8_E4M3", {1, 256}, span_of(ones), {&scales, 1, 1, 256}}), wanted);
}

TEST(Fp8, BlocksAreMultipliedInFp32ToTheLastBit) {
  const json all = fp8_golden();
  for (const json& one : all.at("tensors")) {
    const auto sizes = one.at("sizes").get<std::vector<int64_t>>(), block = one.at("block").get<std::vector<int64_t>>();
    const auto numbers = from_bits(one.at("scales"));
    const bool bf16 = one.at("bf16_scales").get<bool>();
    const std::string bytes = bytes_of(one.at("bytes").get<std::vector<uint8_t>>());
    const std::string stored = bf16 ? bf16_bytes(numbers) : bytes_of(numbers);
    const TensorEntry scale{"s", bf16 ? "BF16" : "F32", {std::ssize(numbers)}, span_of(stored)};
    const TensorEntry whole{"w", "F8_E4M3", sizes, span_of(bytes), {&scale, block[0], block[1], sizes[1]}};
    const auto wanted = from_bits(one.at("values"));
    EXPECT_EQ(read(whole), wanted);
    for (int64_t first = 0; first < whole.count(); first += 3) {  // as rows and columns of mapped files are read
      TensorEntry part = whole;
      part.sizes = {std::min<int64_t>(7, whole.count() - first)};
      part.data = whole.data.subspan(static_cast<size_t>(first), static_cast<size_t>(part.count()));
      part.scales.first = first;
      EXPECT_EQ(read(part), std::vector<float>(wanted.begin() + first, wanted.begin() + first + part.count()));
    }
    std::vector<float> turned(wanted.size());
    model::read_floats_transposed(whole, "test", turned);
    for (size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(
          turned[i % static_cast<size_t>(sizes[1]) * static_cast<size_t>(sizes[0]) + i / static_cast<size_t>(sizes[1])],
          wanted[i]);
  }
}

// The formulas of make_fp8.py.
std::string formula_bytes(const std::string& name, int64_t count) {
  std::string bytes;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t byte = (37 * i + std::accumulate(name.begin(), name.end(), int64_t{0})) % 254;
    bytes += static_cast<char>(byte + (byte >= 127 ? 1 : 0));
  }
  return bytes;
}

RawTensor formula_scales(const std::string& name, const std::string& end, const std::vector<int64_t>& sizes,
                         bool bf16) {
  const int64_t count = sizes.empty() ? 1 : sizes[0] * sizes[1];
  const double start = std::accumulate(name.begin(), name.end(), 0.0);
  std::vector<float> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.push_back(static_cast<float>(0.001 * (1.5 + std::sin(0.7311 * static_cast<double>(i) + start))));
  return {name + end, bf16 ? "BF16" : "F32", sizes, bf16 ? bf16_bytes(numbers) : bytes_of(numbers)};
}

// The tensors of a case, those of a block's projections in fp8.
std::vector<RawTensor> tensors_of(const json& one) {
  const json& config = one.at("config");
  const json& block = config.at("quantization_config").at("weight_block_size");
  const auto weights = family_weights([&] {
    json plain = config;
    plain.erase("quantization_config");
    return plain;
  }());
  std::vector<RawTensor> tensors;
  for (size_t p = 0; p < weights->params().size(); ++p) {
    const shape::ParamSpec& spec = weights->params()[p];
    if (spec.name.find(".layers.") == std::string::npos || !spec.name.ends_with("proj.weight")) {
      const auto values = weights->values(static_cast<int>(p));
      tensors.push_back({spec.name, "F32", spec.sizes, bytes_of(std::vector<float>(values.begin(), values.end()))});
      continue;
    }
    tensors.push_back({spec.name, "F8_E4M3", spec.sizes, formula_bytes(spec.name, spec.count())});
    std::vector<int64_t> sizes;
    for (size_t d = 0; d < block.size(); ++d)
      sizes.push_back((spec.sizes[d] + block[d].get<int64_t>() - 1) / block[d].get<int64_t>());
    const auto end = one.at("scales").get<std::string>();
    tensors.push_back(formula_scales(spec.name, end, sizes, one.at("bf16_scales").get<bool>()));
    if (!block.is_null()) continue;
    const std::string layer = spec.name.substr(0, spec.name.rfind('.') + 1);
    tensors.push_back(
        {layer + (end == "_scale" ? "input_scale" : "activation_scale"), "F32", {}, bytes_of<float>({0.25F})});
  }
  return tensors;
}

// One file, or with its index two.
void write_files(const std::string& directory, const std::vector<RawTensor>& tensors, bool sharded) {
  std::filesystem::remove_all(directory);
  std::filesystem::create_directories(directory);
  if (!sharded) return model::testing::write_raw_safetensors(directory + "/model.safetensors", tensors);
  std::vector<RawTensor> shards[2];
  json map;
  for (size_t i = 0; i < tensors.size(); ++i) {  // a weight and its scales lie in different ones
    shards[i % 2].push_back(tensors[i]);
    map[tensors[i].name] = i % 2 == 0 ? "a.safetensors" : "b.safetensors";
  }
  model::testing::write_raw_safetensors(directory + "/a.safetensors", shards[0]);
  model::testing::write_raw_safetensors(directory + "/b.safetensors", shards[1]);
  std::ofstream(directory + "/model.safetensors.index.json") << json{{"weight_map", map}};
}

using Fp8Models = model::testing::InDirectory;

TEST_F(Fp8Models, LogitsAreThoseOfAnotherImplementation) {
  const json all = fp8_golden();
  for (const json& one : all.at("models"))
    for (const bool sharded : {false, true})
      for (const bool mapped : {false, true}) {
        write_files(directory_, tensors_of(one), sharded);
        std::ofstream(directory_ + "/config.json") << one.at("config");
        model::check_huggingface(directory_, "lm", {});
        const auto weights = model::load_huggingface(directory_, "lm", {.mapped = mapped}, {});
        EXPECT_LT(worst_difference(logits_of_ids(weights, one.at("ids")), one.at("logits")), 3e-5F) << one.at("name");
      }
}

}  // namespace
}  // namespace collimate::golden

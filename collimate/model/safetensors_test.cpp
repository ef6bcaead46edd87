#include "collimate/model/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"

namespace collimate::model {
namespace {

namespace fs = std::filesystem;

class Safetensors : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("collimate-safetensors-" + std::to_string(::getpid()));
    fs::create_directories(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string path(const std::string& name = "model.safetensors") const { return (directory_ / name).string(); }
  // A file with this header text and so many zero bytes of data; `length` overrides the stated header length.
  std::string file_of(const std::string& header, size_t data, uint64_t length = 0) {
    if (length == 0) length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    std::ofstream(path(), std::ios::binary) << bytes << header << std::string(data, '\0');
    return path();
  }
  std::string error_of(const std::string& file) {
    try {
      SafetensorsFile opened(file);
    } catch (const base::InputError& error) {
      const std::string text = error.what();
      return text.rfind("[" + path(), 0) == 0 ? "[F" + text.substr(path().size() + 1) : text;
    }
    return "accepted";
  }

  fs::path directory_;
};

// Around 1 numbers of bf16 are 1/128 apart.
TEST_F(Safetensors, RoundsToBfloat16) {
  const std::vector<float> values = {1 + 1 / 256.0F, 1 + 3 / 256.0F, 1 + 1.01F / 256, -1 - 0.99F / 256, 3.4e38F, -0.0F},
                           rounded = {1, 1 + 2 / 128.0F, 1 + 1 / 128.0F, -1, std::bit_cast<float>(0x7F800000), 0};
  const auto fill = [&](std::span<float> out) { std::copy(values.begin(), values.end(), out.begin()); };
  write_safetensors(path(), {{"a", {2, 3}, fill, "BF16"}, {"b", {6}, fill}});
  const TensorDirectory opened(directory_.string());
  EXPECT_EQ(opened.find("a")->dtype, "BF16");
  EXPECT_EQ(opened.find("a")->data.size(), 12U);
  std::vector<float> back(6);
  read_floats(*opened.find("a"), "test", back);
  EXPECT_EQ(back, rounded);
  EXPECT_TRUE(std::signbit(back[5]));
  read_floats(*opened.find("b"), "test", back);
  EXPECT_EQ(back, values);
}

TEST_F(Safetensors, WritesWhatItReads) {
  const std::vector<float> values = {1, -2, 3.5F, 0, 1e-30F, 7};
  const auto fill = [&](std::span<float> out) { std::copy(values.begin(), values.end(), out.begin()); };
  write_safetensors(path(), {{"a", {2, 3}, fill}, {"b", {6}, fill}});
  const TensorDirectory opened(directory_.string());
  ASSERT_EQ(opened.entries().size(), 2U);
  std::vector<float> back(6);
  read_floats(*opened.find("b"), "test", back);
  EXPECT_EQ(back, values);
  read_floats_transposed(*opened.find("a"), "test", back);
  EXPECT_EQ(back, (std::vector<float>{1, 0, -2, 1e-30F, 3.5F, 7}));
  for (const auto& entry : fs::directory_iterator(directory_)) EXPECT_EQ(entry.path().extension(), ".safetensors");
}

TEST_F(Safetensors, WidensBfloatAndHalf) {
  const uint16_t bits[] = {0x3F80, 0xC000, 0x0001, 0x7F80, 0x3C00, 0xC000, 0x0001, 0xFC00, 0x3555};
  const std::string header =
      R"({"b":{"dtype":"BF16","shape":[4],"data_offsets":[0,8]},"h":{"dtype":"F16","shape":[5],"data_offsets":[8,18]}})";
  file_of(header, 0);
  std::ofstream(path(), std::ios::binary | std::ios::app).write(reinterpret_cast<const char*>(bits), sizeof(bits));
  const SafetensorsFile file(path());
  std::vector<float> wide(4), half(5);
  read_floats(file.entries()[0], "test", wide);
  read_floats(file.entries()[1], "test", half);
  EXPECT_EQ(wide, (std::vector<float>{1, -2, 0x1p-133F, INFINITY}));
  EXPECT_EQ(half, (std::vector<float>{1, -2, 0x1p-24F, -INFINITY, 0.333251953125F}));
}

TEST_F(Safetensors, TruncatedFile) {
  const std::string header = R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  EXPECT_EQ(error_of(file_of(header, 16)), "accepted");
  EXPECT_EQ(error_of(file_of(header, 15)),
            "[F] expected 16 bytes of tensor data, got 15; try downloading the file again: it is truncated");
  fs::resize_file(path(), 30);
  EXPECT_EQ(
      error_of(path()),
      "[F] expected a header of 55 bytes, got a file of 30 bytes; try downloading the file again: it is truncated");
  fs::resize_file(path(), 5);
  EXPECT_EQ(error_of(path()), "[F] expected a safetensors file, got 5 bytes");
  fs::resize_file(path(), 0);
  EXPECT_EQ(error_of(path()), "[F] expected a safetensors file, got 0 bytes");
}

TEST_F(Safetensors, MissingFile) {
  EXPECT_EQ(error_of(path()), "[F] expected a readable file, got No such file or directory");
  EXPECT_EQ(error_of(directory_.string()), "[" + directory_.string() + "] expected a regular file, got a directory");
}

TEST_F(Safetensors, AbsurdHeader) {
  EXPECT_EQ(error_of(file_of("{}", 0, uint64_t{1} << 60)),
            "[F] expected a header of at most 100000000 bytes, got 1152921504606846976; try another file: this is no "
            "safetensors file");
  EXPECT_EQ(error_of(file_of("[1,2]", 0)), "[F] expected a JSON object as header, got something else");
  EXPECT_EQ(error_of(file_of("{\"a\":", 0)), "[F] expected a JSON object as header, got something else");
  EXPECT_NE(error_of(file_of("{\"a\":" + std::string(200000, '[') + std::string(200000, ']') + "}", 0)), "accepted");
}

TEST_F(Safetensors, WrongEntries) {
  const auto entry = [&](const std::string& body, size_t data) {
    return error_of(file_of("{\"a\":{" + body + "}}", data));
  };
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0])", 0),
            "[F a shape] expected a shape whose size fits 64 bits, got 4294967296 x 4294967296");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])", 4),
            "[F a shape] expected a list of sizes, got [-1]");
  EXPECT_EQ(entry(R"("dtype":"Q9","shape":[1],"data_offsets":[0,4])", 4),
            "[F a dtype] expected F32, BF16 or F16, got \"Q9\"");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])", 4),
            "[F a data_offsets] expected 8 bytes for F32 [2], got [0,4]");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[1],"data_offsets":[8,4])", 8),
            "[F a data_offsets] expected 4 bytes for F32 [1], got [8,4]");
  EXPECT_EQ(entry(R"("dtype":"F32","shape":[1])", 4).substr(0, 49),
            "[F a] expected dtype, shape and data_offsets, got");
}

TEST_F(Safetensors, AKeyTwiceIsRefused) {
  const std::string part = R"("dtype":"F32","shape":[1],"data_offsets":)";
  EXPECT_EQ(error_of(file_of("{\"a\":{" + part + "[0,4]},\"a\":{" + part + "[4,8]}}", 8)),
            "[F] expected each key once, got a again");
  EXPECT_EQ(error_of(file_of(R"({"__metadata__":{},"__metadata__":{}})", 0)),
            "[F] expected each key once, got __metadata__ again");
  EXPECT_EQ(error_of(file_of("{\"a\":{\"shape\":[2]," + part + "[0,4]}}", 4)),
            "[F a] expected each key once, got shape again");
  EXPECT_EQ(error_of(file_of("{\"a\":{" + part + "[0,4]},\"b\":{" + part + "[4,8]}}", 8)), "accepted");
}

// The header is not well-formed, which only shows at its end: it is refused before, at the first number too many, when
// no more than those before it are in memory.
TEST_F(Safetensors, LongListsAreRefusedWhereTheyBecomeTooLong) {
  std::string ones = "1";
  for (int i = 0; i < 100'000; ++i) ones += ",1";
  EXPECT_EQ(error_of(file_of(R"({"a":{"dtype":"F32","shape":[)" + ones, 0)),
            "[F a shape] expected at most 16 numbers, got more");
  EXPECT_EQ(error_of(file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[)" + ones, 0)),
            "[F a data_offsets] expected at most 2 numbers, got more");
  EXPECT_EQ(error_of(file_of(R"({"a":{"dtype":["F32"],"shape":[[)" + ones, 0)),
            "[F a shape] expected a text or a list of numbers, got more than that");
  EXPECT_EQ(error_of(file_of(R"({"a":[)" + ones, 0)), "[F a] expected dtype, shape and data_offsets, got a list");
  EXPECT_EQ(error_of(file_of(R"({"a":1,"b":)" + ones, 0)), "[F a] expected dtype, shape and data_offsets, got 1");
  EXPECT_EQ(error_of(file_of(R"({"__metadata__":)" + std::string(300, '['), 0)),
            "[F] expected JSON of at most 200 levels, got deeper nesting");
}

TEST_F(Safetensors, WhatIsNoneOfATensorsThreePartsIsPassedOver) {
  EXPECT_EQ(error_of(file_of(R"({"__metadata__":{"format":"pt","more":{"a":[1,2,3]}},)"
                             R"("a":{"more":[[1,2,3],{"shape":[7]}],"dtype":"F32","note":"x","shape":[2,1],)"
                             R"("data_offsets":[0,8]},"b":{"dtype":"U8","shape":[1],"data_offsets":[8,9]}})",
                             9)),
            "accepted");
  const SafetensorsFile file(path());
  ASSERT_EQ(file.entries().size(), 2U);
  EXPECT_EQ(file.entries()[0].sizes, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ(file.entries()[1].name, "b");
}

TEST_F(Safetensors, ErrorsRepeatTheBeginningOfWhatTheFileSays) {
  const std::string name = std::string(96, 'n') + "ü" + std::string(100'000, 'n');
  const std::string entry = R"(":{"dtype":")" + std::string(100'000, 'd') + R"(","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(
      error_of(file_of("{\"" + name + entry, 4)),
      "[F " + std::string(96, 'n') + "... dtype] expected F32, BF16 or F16, got \"" + std::string(96, 'd') + "...");
}

TEST_F(Safetensors, OverlapsAndGaps) {
  const auto two = [&](const std::string& first, const std::string& second, size_t data) {
    return error_of(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + first +
                                R"(},"b":{"dtype":"F32","shape":[2],"data_offsets":)" + second + "}}",
                            data));
  };
  EXPECT_EQ(two("[0,8]", "[8,16]", 16), "accepted");
  EXPECT_EQ(two("[0,8]", "[4,12]", 12), "[F b] expected data at offset 8, got offset 4: tensors overlap");
  EXPECT_EQ(two("[0,8]", "[12,20]", 20), "[F b] expected data at offset 8, got offset 12: tensors leave a gap");
  EXPECT_EQ(two("[0,8]", "[8,16]", 20), "[F] expected 16 bytes of tensor data, got 20");
}

TEST_F(Safetensors, Shards) {
  const auto fill = [](std::span<float> out) { out[0] = 4; };
  write_safetensors(path("one.safetensors"), {{"a", {1}, fill}});
  write_safetensors(path("two.safetensors"), {{"b", {1}, fill}});
  const std::string index = path("model.safetensors.index.json");
  host::write_file_atomically(index, R"({"weight_map":{"a":"one.safetensors","b":"two.safetensors"}})");
  EXPECT_NE(TensorDirectory(directory_.string()).find("b"), nullptr);
  host::write_file_atomically(index, R"({"weight_map":{"a":"one.safetensors","c":"two.safetensors"}})");
  EXPECT_THROW(TensorDirectory(directory_.string()), base::InputError);
  host::write_file_atomically(index, R"({"weight_map":{"a":"../one.safetensors"}})");
  EXPECT_THROW(TensorDirectory(directory_.string()), base::InputError);
  const std::string deep = std::string(200000, '[') + std::string(200000, ']');
  host::write_file_atomically(index, R"({"weight_map":{"a":)" + deep + "}}");
  EXPECT_THROW(TensorDirectory(directory_.string()), base::InputError);
}

TEST_F(Safetensors, FullDiskLeavesTheOldFile) {
  const auto fill = [](std::span<float> out) { out[0] = 4; };
  EXPECT_THROW(write_safetensors(path("absent/model.safetensors"), {{"a", {1}, fill}}), base::RunError);
  write_safetensors(path(), {{"a", {1}, fill}});
  const auto broken = [](std::span<float>) { throw base::RunError("no values"); };
  EXPECT_THROW(write_safetensors(path(), {{"a", {1}, broken}}), base::RunError);
  EXPECT_EQ(error_of(path()), "accepted");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), fs::directory_iterator{}), 1);
}

}  // namespace
}  // namespace collimate::model

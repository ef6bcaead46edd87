#include "collimate/model/torch_file.h"

#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "collimate/base/error.h"
#include "collimate/base/read_file.h"
#include "tests/support/base/error_of.h"
#include "tests/support/model/tiny_weights.h"

namespace collimate::model {
namespace {

namespace fs = std::filesystem;

using caffe2::serialize::PyTorchStreamWriter;
using testing::tiny_shape;
using testing::tiny_weights;

// Writes pickles as torch.save does (protocol 2).
class Pickle {
 public:
  Pickle() { out_ = std::string("\x80\x02", 2) + "ccollections\nOrderedDict\n)R("; }

  static std::string text(const std::string& value) {
    return fmt::format("X{}{}", number(static_cast<uint32_t>(value.size())), value);
  }
  static std::string tuple(const std::vector<int64_t>& values) {
    std::string out = "(";
    for (const int64_t value : values) out.append("J").append(number(static_cast<int32_t>(value)));
    return out.append("t");
  }
  static std::string tensor(const std::string& type, const std::string& record, int64_t offset,
                            const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
    return fmt::format("ctorch._utils\n_rebuild_tensor_v2\n(({}ctorch\n{}\n{}{}K\x01tQJ{}{}{}{}", text("storage"), type,
                       text(record), text("cpu"), number(static_cast<int32_t>(offset)), tuple(sizes), tuple(strides),
                       kHooks);
  }
  // requires_grad and hooks, the end of what a tensor or parameter is made of.
  static constexpr const char* kHooks =
      "\x89"
      "ccollections\nOrderedDict\n)RtR";
  void add(const std::string& name, const std::string& value) { out_.append(text(name)).append(value); }
  std::string finished() const { return out_ + "u."; }

 private:
  template <typename Number>
  static std::string number(Number value) {
    std::string bytes(sizeof(value), '\0');
    std::memcpy(bytes.data(), &value, sizeof(value));
    return bytes;
  }
  std::string out_;
};

std::vector<int64_t> strides_of(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * sizes[d];
  return strides;
}

class TorchFiles : public testing::InDirectory {
 protected:
  void SetUp() override { fs::create_directories(directory_); }
  std::string path() const { return directory_ + "/pytorch_model.bin"; }
  // A file with one record "0" of the floats 0, 1, 2, …
  void write(const std::string& pickle, int floats = 6) const {
    PyTorchStreamWriter archive(path());
    archive.writeRecord("data.pkl", pickle.data(), pickle.size());
    std::vector<float> values;
    for (int i = 0; i < floats; ++i) values.push_back(static_cast<float>(i));
    archive.writeRecord("data/0", values.data(), values.size() * sizeof(float));
    archive.writeEndOfFile();
  }
  std::string refusal_of(const std::string& name, const std::string& value) const {
    Pickle pickle;
    pickle.add(name, value);
    write(pickle.finished());
    return base::message_of([&] { TorchFile file(path()); });
  }
};

// A model of any family loads with equal values from a PyTorch file and from safetensors.
TEST_F(TorchFiles, AModelIsWhatItIsInSafetensors) {
  for (const std::string& family : shape::known_families()) {
    const auto weights = tiny_weights(tiny_shape(family));
    save_huggingface(*weights, directory_);
    Pickle pickle;
    {
      const TensorDirectory files(directory_);
      PyTorchStreamWriter archive(path());
      for (const auto& [name, entry] : files.entries()) {
        archive.writeRecord("data/" + name, entry->data.data(), entry->data.size());
        pickle.add(name, Pickle::tensor("FloatStorage", name, 0, entry->sizes, strides_of(entry->sizes)));
      }
      const std::string text = pickle.finished();
      archive.writeRecord("data.pkl", text.data(), text.size());
      archive.writeEndOfFile();
    }
    fs::remove(directory_ + "/model.safetensors");
    EXPECT_EQ(load_huggingface(directory_, "", {}, {})->checksum(), weights->checksum()) << family;
    EXPECT_EQ(load_huggingface(directory_, "", {.mapped = true}, {})->checksum(), weights->checksum()) << family;
  }
}

TEST_F(TorchFiles, ATensorMayBePartOfAStorage) {
  Pickle pickle;
  pickle.add("a", Pickle::tensor("FloatStorage", "0", 2, {2, 2}, {2, 1}));
  pickle.add("b", fmt::format("ctorch._utils\n_rebuild_parameter\n({}{}",
                              Pickle::tensor("FloatStorage", "0", 0, {3}, {1}), Pickle::kHooks));
  write(pickle.finished());
  const TorchFile file(path());
  ASSERT_EQ(file.entries().size(), 2U);
  std::vector<float> a(4), b(3);
  read_floats(file.entries()[0], "", a);
  read_floats(file.entries()[1], "", b);
  EXPECT_EQ(a, (std::vector<float>{2, 3, 4, 5}));
  EXPECT_EQ(b, (std::vector<float>{0, 1, 2}));
}

TEST_F(TorchFiles, NothingIsExecuted) {
  const std::string message = refusal_of("x", fmt::format("cos\nsystem\n({}tR", Pickle::text("touch /tmp/harm")));
  EXPECT_THAT(message, ::testing::HasSubstr("got 'os system', which would be executed; try model.safetensors"));
}

TEST_F(TorchFiles, WhatDoesNotFitIsRefused) {
  using ::testing::HasSubstr;
  const auto tensor = [](int64_t offset, std::vector<int64_t> sizes, std::vector<int64_t> strides) {
    return Pickle::tensor("FloatStorage", "0", offset, sizes, strides);
  };
  EXPECT_THAT(refusal_of("t", tensor(0, {2, 3}, {1, 2})), HasSubstr("t] expected adjacent values, got strides 1, 2"));
  EXPECT_THAT(refusal_of("t", tensor(1, {6}, {1})), HasSubstr("expected 6 values from 1 on, got a record of 6"));
  EXPECT_THAT(refusal_of("t", tensor(-1, {6}, {1})), HasSubstr("from 0 on"));
  EXPECT_THAT(refusal_of("t", Pickle::tensor("FloatStorage", "9", 0, {1}, {1})), HasSubstr("archive of torch.save"));
  EXPECT_THAT(refusal_of("t", "K\x01"), HasSubstr("a dictionary from names to tensors"));
  EXPECT_THAT(refusal_of("t", "h\x07"), HasSubstr("a value that was kept"));
  EXPECT_THAT(refusal_of("t", "\x92"), HasSubstr("operation 0x92"));
  std::ofstream(path()) << "no archive";
  EXPECT_THAT(base::message_of([&] { TorchFile file(path()); }), HasSubstr("torch.save wrote since version 1.6"));
}

// Bytes of the pickle and of the archive are changed, cut and repeated: a file is read, or refused.
TEST_F(TorchFiles, DamagedFilesAreReadOrRefused) {
  Pickle pickle;
  for (int i = 0; i < 8; ++i)
    pickle.add(fmt::format("t{}", i), Pickle::tensor("FloatStorage", "0", i % 3, {2, 1}, {1, 1}));
  write(pickle.finished());
  const std::string whole = base::read_file(path());
  std::mt19937 draw(7);
  int refused = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = whole;
    for (uint32_t edits = draw() % 3 + 1; edits > 0; --edits)
      damaged[draw() % damaged.size()] = static_cast<char>(draw());
    if (round % 5 == 0) damaged.resize(draw() % damaged.size());
    std::ofstream(path(), std::ios::binary) << damaged;
    try {
      const TorchFile file(path());
      for (const TensorEntry& entry : file.entries()) {
        std::vector<float> values(static_cast<size_t>(entry.count()));
        if (entry.dtype == "F32") read_floats(entry, "", values);
      }
    } catch (const base::InputError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace collimate::model

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <tuple>

#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/rlhf/prompt/source.h"
#include "collimate/rlhf/types/loss.h"
#include "tests/support/base/error_of.h"
#include "tests/support/rlhf/prompt/letter_tokenizer.h"

namespace collimate::rlhf {
namespace {

// Two files of rows of one kind, in memory or read again for each pass.
class ManyRows : public testing::Test {
 protected:
  void TearDown() override {
    for (const std::string& path : paths_) std::filesystem::remove(path);
  }

  void write(const std::string& begin, const std::string& end) const {
    for (size_t file = 0; file < paths_.size(); ++file) {
      std::ofstream out(paths_[file]);
      for (char letter = 'a'; letter < 'x'; ++letter)
        out << begin << std::string(file + 1, letter) << end << (letter % 5 == 0 ? "\n\n" : "\n");
    }
  }

  text::Dataset dataset(bool in_memory) const {
    const std::vector<text::DataSource> sources = {{.path = paths_[0], .weight = 2.5},
                                                   {.path = paths_[1], .weight = 0.5}};
    text::Dataset data = text::Dataset::read(sources, {}, in_memory ? text::Dataset::kHeldBytes : 100);
    EXPECT_EQ(data.is_held(), in_memory);
    return data;
  }

  RowSource source(const text::Dataset& data, const SourceOptions& options) const {
    const text::Renderer renderer(tokenizer_, text::make_chat_template(tokenizer_, "plain"), {});
    return {data, renderer, options};
  }

  void expect_equal(const RowSource& many, const RowSource& few) const {
    ASSERT_EQ(many.examples(), few.examples());
    ASSERT_EQ(many.epoch_examples(), few.epoch_examples());
    for (int64_t i = 0; i < few.examples(); ++i) {
      EXPECT_EQ(many.place(i), few.place(i));
      EXPECT_EQ(many.row(i), few.row(i));
      EXPECT_EQ(many.example(i), few.example(i));
      EXPECT_EQ(many.rendered(i)[0].ids, few.rendered(i)[0].ids);
    }
    for (const int64_t iteration : {0, 3, 40, 3}) {  // of several epochs, and back, as after a stop
      const Batch left = many.rows(iteration, 12, 0, 12), right = few.rows(iteration, 12, 0, 12);
      ASSERT_EQ(left.names(), right.names());
      for (int64_t r = 0; r < 12; ++r) {
        EXPECT_EQ(left.get(batch::kUid, r), right.get(batch::kUid, r));
        EXPECT_THAT(left.row(batch::kIds, r), testing::ElementsAreArray(right.row(batch::kIds, r)));
        EXPECT_THAT(left.row(batch::kTrainable, r), testing::ElementsAreArray(right.row(batch::kTrainable, r)));
      }
    }
  }

  const std::vector<std::string> paths_ = {testing::TempDir() + "/collimate-many-rows-a.jsonl",
                                           testing::TempDir() + "/collimate-many-rows-b.jsonl"};
  const text::CharacterTokenizer tokenizer_ = letter_tokenizer();
};

TEST_F(ManyRows, AreThoseOfRowsInMemory) {
  const std::vector<std::tuple<RowKind, std::string, std::string>> kinds = {
      {RowKind::kPrompt, R"({"prompt": ")", R"(", "ground_truth": [1.5, -7, 9007199254740993], "note": null})"},
      {RowKind::kDemonstration, R"({"completion": "z", "prompt": ")", "\"}"},
      {RowKind::kPreference, R"({"chosen": "y", "rejected": "z", "margin": 0.25, "prompt": ")", "\"}"},
      {RowKind::kMarked, R"({"completion": "z", "label": true, "prompt": ")", "\"}"}};
  for (const auto& [kind, begin, end] : kinds) {
    write(begin, end);
    const SourceOptions options{.kind = kind,
                                .max_tokens = 3,
                                .long_rows = LongRows::kDrop,
                                .seed = 7,
                                .mismatched = kind == RowKind::kMarked,
                                .margins = kind == RowKind::kPreference};
    expect_equal(source(dataset(false), options), source(dataset(true), options));
  }
}

TEST_F(ManyRows, AreHeldOutAndCutOffAsThoseInMemory) {
  write(R"({"prompt": ")", "\"}");
  text::Dataset many = dataset(false), few = dataset(true);
  EXPECT_EQ(many.fingerprint(), few.fingerprint());
  EXPECT_EQ(many.verdict(), few.verdict());
  const text::Dataset many_held_out = many.hold_out(9, 3), few_held_out = few.hold_out(9, 3);
  const SourceOptions options{.seed = 2};
  expect_equal(source(many_held_out, options), source(few_held_out, options));
  expect_equal(source(many, options), source(few, options));
  for (text::Dataset* data : {&many, &few}) data->keep_first(25);
  EXPECT_EQ(many.size(), 25);
  EXPECT_EQ(many.weights(), few.weights());
  expect_equal(source(many, options), source(few, options));
}

TEST_F(ManyRows, ErrorsNameTheRowAsThoseInMemoryDo) {
  write(R"({"prompt": ")", "\"}");
  std::ofstream(paths_[1], std::ios::app) << R"({"prompt": "abcdefgh"})";
  std::vector<std::string> told;
  for (const bool in_memory : {false, true}) {
    const text::Dataset data = dataset(in_memory);
    told.push_back(base::message_of([&] { source(data, {.max_tokens = 5}); }));
    EXPECT_THAT(base::message_of([&] { data.require("completion", "a test"); }),
                testing::HasSubstr("many-rows-a.jsonl:1] expected completion, which a test needs"));
  }
  EXPECT_THAT(told[0], testing::HasSubstr("expected at most 5 tokens"));
  EXPECT_EQ(told[0], told[1]);
}

// Rows that are read a second time may not be others.
TEST_F(ManyRows, FilesThatChangeMeanwhileAreNamed) {
  write(R"({"prompt": ")", "\"}");
  const text::Dataset data = dataset(false);
  const RowSource before = source(data, {});
  const std::vector<int32_t> ids = before.rendered(0)[0].ids;
  write(R"({"prompt": "x)", "\"}");
  EXPECT_THAT(base::message_of([&] { source(data, {}); }),
              testing::AllOf(testing::HasSubstr(paths_[0]), testing::HasSubstr("other rows than at first")));
  EXPECT_EQ(before.rendered(0)[0].ids, ids) << "what was rendered before stays";
}

}  // namespace
}  // namespace collimate::rlhf

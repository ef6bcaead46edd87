// What a row says that is not read: it is listed with column and text, and not predicted as if it were not there.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "collimate/plan/published/results.h"

namespace collimate::plan::published {
namespace {

Row said_row(const std::map<std::string, std::string>& changes) {
  Row row;
  for (const auto& [column, text] : std::map<std::string, std::string>{{"id", "1"},
                                                                       {"paper", "P"},
                                                                       {"algo", "PPO"},
                                                                       {"actor", "7"},
                                                                       {"critic", "7"},
                                                                       {"ref", "7"},
                                                                       {"reward", "7"},
                                                                       {"n_gpus", "16"},
                                                                       {"gpu_type", "A100"},
                                                                       {"batch", "1024"},
                                                                       {"prompt_len", "1024"},
                                                                       {"gen_len", "1024"},
                                                                       {"system", "verl"},
                                                                       {"metric", "time"},
                                                                       {"value", "100"},
                                                                       {"unit", "s"},
                                                                       {"phase", "step"}})
    row.columns[column] = text;
  for (const auto& [column, text] : changes) row.columns[column] = text;
  return row;
}

std::string said_reason(const std::string& column, const std::string& text) {
  return evaluate_row(said_row({{column, text}}), [](const std::string& name) { return constants_of(name); }).reason;
}

TEST(KnownWords, WhatIsNotReadIsNamed) {
  for (const auto& [column, text] : {std::pair("algo", "DPO"),
                                     {"algo", "foo"},
                                     {"placement", "gibberish words"},
                                     {"placement", "actor 8, critic 8"},
                                     {"placement", "actor+ref | critic+reward"},
                                     {"placement", "not colocated"},
                                     {"parallelism", "gibberish"},
                                     {"parallelism", "TP2, gibberish"},
                                     {"parallelism", "TPx"},
                                     {"batch", "abc"},
                                     {"batch", "512 something"},
                                     {"prompt_len", "abc"},
                                     {"gen_len", "abc"},
                                     {"gen_len", "0"},
                                     {"gen_len", "max 0"},
                                     {"gpu_type", "A100-80GB x2"}})
    EXPECT_THAT(said_reason(column, text), testing::AllOf(testing::HasSubstr(column), testing::HasSubstr(text),
                                                          testing::HasSubstr("is not read")));
  EXPECT_EQ(said_reason("batch", "512 something"), "batch '512 something', of which 'something' is not read");
  EXPECT_EQ(said_reason("algo", "DPO"), "algo 'DPO' is not read");
}

TEST(KnownWords, TensorParallelismDividesItsDevices) {
  EXPECT_EQ(said_reason("parallelism", "TP3"), "parallelism 'TP3': TP3 does not divide the 16 devices of generate");
  EXPECT_EQ(said_reason("parallelism", "train TP64"),
            "parallelism 'train TP64': TP64 does not divide the 16 devices of train");
  EXPECT_EQ(said_reason("parallelism", "train TP16"), "");
}

TEST(KnownWords, WordsOfPublishedRunsAreRead) {
  for (const auto& [column, text] : {std::pair("algo", "PPO (no critic/ref)"),
                                     {"placement", "96 rollout:32 train"},
                                     {"placement", "colocated, Adam offload, RM/ref ZeRO-3 param offload"},
                                     {"placement", "4/4/2/2"},
                                     {"placement", "max staleness eta=4"},
                                     {"parallelism", "TP8 PP2; ref/value 16 GPUs (PP2); gen bs206, MBS8"},
                                     {"parallelism", "gen[TP,PP]=[4,1] train[TP,CP,EP,PP,VPP]=[2,1,8,1,n/a]"},
                                     {"batch", "131.9k pairs/epoch, <=1024 pairs (0.5M tok)/step"},
                                     {"batch", "GBS 2048 (prompts x gens 64x32), train GBS 512"},
                                     {"gen_len", "max total 4096, avg 3058"},
                                     {"gen_len", "512 fixed (no EOS)"},
                                     {"gen_len", "8k context"},
                                     {"gpu_type", "A100-80GB (8/node, 800 Gb RDMA)"},
                                     {"gpu_type", "unstated (A100/A800/H800-80GB class)"}}) {
    Row row = said_row({{column, text}});
    if (std::string(text).starts_with("96")) row.columns["n_gpus"] = "128";
    const auto read = scenario_of(row);
    const auto* reason = std::get_if<std::string>(&read);
    EXPECT_EQ(reason, nullptr) << column << ": " << text << ": " << (reason == nullptr ? "" : *reason);
  }
}

}  // namespace
}  // namespace collimate::plan::published

#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "collimate/text/dataset.h"

namespace collimate::recipe {

// A pipeline has so many steps, in this order: SFT, reward model, PPO. Each trains on rows of its own.
constexpr size_t kPipelineSteps = 3;
using StepShares = std::array<double, kPipelineSteps>;

// Returns "2,4,4" as shares of the rows that add up to 1. Throws InputError naming `where` for anything but three
// numbers that are not negative, one of them above 0.
StepShares split_shares(const std::string& text, const std::string& where);

// Returns the step of each row. Rows are put in an order that the seed alone draws, and cut where the shares of each
// step end (rounded to the nearest row). So the same seed, shares and number of rows give the same split, and no row
// has two steps.
std::vector<size_t> split_rows(int64_t rows, const StepShares& shares, uint64_t seed);

// Says what a split is made of.
struct SplitRequest {
  std::vector<text::DataSource> sources;
  bool drop_bad_rows = false;
  std::string shares;  // "2,4,4"
  uint64_t seed = 0;
};

// Keeps a split in a directory with 1-sft.jsonl (prompt and the chosen answer), 2-reward.jsonl (pairs), 3-ppo.jsonl
// (prompts) and split.json, which is written last.
class PipelineSplit {
 public:
  // Makes the split, or takes the one that the directory keeps. Where the kept one is of another request, or of files
  // that have changed since, it is made again if `may_change`; otherwise InputError names each difference. Files that
  // are gone are not compared. Throws InputError for data that cannot be read, has rows that are no pairs, or leaves a
  // step without rows.
  PipelineSplit(const SplitRequest& request, std::filesystem::path directory, bool may_change);

  std::string file(size_t step) const;
  int64_t rows(size_t step) const { return rows_.at(step); }
  // Returns for a person how many rows each step has, and where they are kept.
  std::string text() const;

 private:
  nlohmann::json described(const SplitRequest& request) const;
  bool take_kept(const nlohmann::json& wanted, bool may_change);
  void make(const SplitRequest& request, nlohmann::json wanted);

  std::filesystem::path directory_;
  std::array<int64_t, kPipelineSteps> rows_{};
};

}  // namespace collimate::recipe

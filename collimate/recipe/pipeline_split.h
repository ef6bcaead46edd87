#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "collimate/text/dataset.h"

namespace collimate::recipe {

// The steps of a pipeline, in order; each trains on rows of its own.
constexpr size_t kPipelineSteps = 3;
using StepShares = std::array<double, kPipelineSteps>;

// "2,4,4" as shares of the rows that add up to 1. InputError naming `where` for anything but three numbers that are not
// negative, one of them above 0.
StepShares split_shares(const std::string& text, const std::string& where);

// The step of each row: rows in an order that the seed alone draws, cut where the shares before a step end (rounded to
// the nearest row). So the same seed, shares and number of rows give the same split, and no row has two steps.
std::vector<size_t> split_rows(int64_t rows, const StepShares& shares, uint64_t seed);

// A split is made of these.
struct SplitRequest {
  std::vector<text::DataSource> sources;
  bool drop_bad_rows = false;
  std::string shares;  // "2,4,4"
  uint64_t seed = 0;
};

// A split that is kept: a directory with 1-sft.jsonl (prompt and the chosen answer), 2-reward.jsonl (pairs),
// 3-ppo.jsonl (prompts) and, written last, split.json.
class PipelineSplit {
 public:
  // Makes the split, or takes the one that the directory keeps. Where that is of another request, or of files that have
  // changed since, it is made again if `may_change`, else it is an InputError that names each difference; files that
  // are gone are not compared. InputError for data that cannot be read, has rows that are no pairs, or leaves a step
  // without rows.
  PipelineSplit(const SplitRequest& request, std::filesystem::path directory, bool may_change);

  std::string file(size_t step) const;
  int64_t rows(size_t step) const { return rows_.at(step); }
  // For a person: the rows of each step, and where they are kept.
  std::string text() const;

 private:
  nlohmann::json described(const SplitRequest& request) const;
  bool take_kept(const nlohmann::json& wanted, bool may_change);
  void make(const SplitRequest& request, nlohmann::json wanted);

  std::filesystem::path directory_;
  std::array<int64_t, kPipelineSteps> rows_{};
};

}  // namespace collimate::recipe

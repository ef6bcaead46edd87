// ORPO, CPO and SimPO: pairs without a reference.
#include <algorithm>

#include "tests/golden/offline.h"

namespace collimate::golden {
namespace {

// Pairs without a reference. ORPO's likelihood covers the prompt too.
class ReferenceFreeTask : public OfflineTask {
 public:
  ReferenceFreeTask(const std::string& kind, const Options& options) {
    loss_ = loss_of(kind, options);
    with_prompt_ = loss_.reads(rlhf::kCompletion);
  }

  OfflineMicro prepare(const json& micro, const json& micros, Trainee&) override {
    std::vector<TokenRow> pairs =
        interleaved(unpadded_rows(micro.at("batch"), "chosen_"), unpadded_rows(micro["batch"], "rejected_"));
    std::vector<std::vector<float>> completion;
    for (TokenRow& row : pairs) {
      completion.emplace_back(row.trainable.begin(), row.trainable.end());
      if (with_prompt_) std::fill(row.trainable.begin() + 1, row.trainable.end(), 1);
    }
    Batch rows = to_batch(pairs);
    if (with_prompt_) rows.set_ragged(rlhf::kCompletion, completion);
    return mean_of_micros(rows, micros.size());
  }

  std::map<std::string, std::string> metric_names() const override {
    std::map<std::string, std::string> names;
    for (const char* name : {"rewards/chosen", "rewards/rejected", "rewards/margins", "rewards/accuracies",
                             "log_odds_ratio", "log_odds_chosen"})
      names[name] = name;
    return names;
  }

 private:
  bool with_prompt_ = false;
};

}  // namespace

std::unique_ptr<OfflineTask> make_reference_free_task(const std::string& kind, const Options& options) {
  return std::make_unique<ReferenceFreeTask>(kind, options);
}

}  // namespace collimate::golden

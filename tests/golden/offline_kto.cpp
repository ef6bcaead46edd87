// KTO: answers that are marked, and mismatched ones from which the KL is estimated.
#include <numeric>

#include "collimate/batch/trainable.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/modules/kl_estimate.h"
#include "collimate/train/scoring.h"
#include "tests/golden/offline.h"

namespace collimate::golden {
namespace {

class KtoTask : public OfflineTask {
 public:
  KtoTask(const Options& o, const json& golden, const ModelShelf& shelf) : reference_(golden, o, shelf) {
    loss_ = loss_of("kto", o);
  }

  OfflineMicro prepare(const json& micro, const json& micros, Trainee& trainee) override {
    const json& batch = micro.at("batch");
    Batch rows = to_batch(unpadded_rows(batch));
    std::vector<float> desirable;
    for (const json& label : batch.at("label")) desirable.push_back(is_true(label) ? 1.F : 0.F);
    rows.set(rlhf::kDesirable, desirable);
    if (batch.contains("KL_input_ids") && !batch["KL_input_ids"].is_null())
      rows.set(rlhf::kKlEstimate, std::vector<float>(desirable.size(), kl_estimate(batch, trainee)));
    return mean_of_micros(train::with_log_probs(reference_.model(), rows, batch::kReferenceLogProbs, {}),
                          micros.size());
  }

  void stepped(size_t step, Trainee& trainee) override { reference_.follow(step, trainee); }

  std::map<std::string, std::string> metric_names() const override {
    return {{"rewards/chosen", "rewards/chosen"}, {"rewards/rejected", "rewards/rejected"}};
  }

 private:
  static std::vector<float> row_sums(const Batch& rows, const Key<float>& key) {
    std::vector<float> sums;
    for (int64_t r = 0; r < rows.rows(); ++r) {
      const std::vector<float> of_tokens = batch::at_trainable(rows, key, r);
      sums.push_back(static_cast<float>(std::accumulate(of_tokens.begin(), of_tokens.end(), 0.0)));
    }
    return sums;
  }

  // Mean log-ratio of answers to other prompts, at least 0: as the recipe's module has it.
  float kl_estimate(const json& batch, Trainee& trainee) {
    Batch rows = to_batch(unpadded_rows(batch, "KL_"));
    rows = train::with_log_probs(trainee.model(), rows, batch::kLogProbs, {});
    rows = train::with_log_probs(reference_.model(), rows, batch::kReferenceLogProbs, {});
    rows.set(rlhf::kMismatchedLogProb, row_sums(rows, batch::kLogProbs));
    rows.set(rlhf::kMismatchedReferenceLogProb, row_sums(rows, batch::kReferenceLogProbs));
    return rlhf::kl_estimate_module()->call("kl_estimate", rows, {}).get(rlhf::kKlEstimate, 0);
  }

  Reference reference_;
};

}  // namespace

std::unique_ptr<OfflineTask> make_kto_task(const Options& options, const json& golden, const ModelShelf& shelf) {
  return std::make_unique<KtoTask>(options, golden, shelf);
}

}  // namespace collimate::golden

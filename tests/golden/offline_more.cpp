// Offline trainers beyond pairs with a reference: KTO, ORPO, CPO and SimPO.
#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/rlhf/loss/kto.h"
#include "collimate/rlhf/loss/reference_free.h"
#include "collimate/train/scoring.h"
#include "tests/golden/offline.h"

namespace collimate::golden {
namespace {

template <class Make>
rlhf::Loss known(const std::string& trainer, const Options& options, Make make) {
  try {
    return make();
  } catch (const base::InputError&) {
    throw UnknownKind(trainer + " loss " + options.find("loss_type").dump(), false);
  }
}

class KtoTask : public OfflineTask {
 public:
  KtoTask(const Options& o, const json& golden, const ModelShelf& shelf)
      : reference_(shelf.open(golden["hyper"].at("model"), "lm", false), {}) {
    loss_ = known("kto", o, [&] {
      return rlhf::kto_loss({.loss_type = o.text("loss_type", "kto"),
                             .beta = o.number("beta", 0.1),
                             .desirable_weight = o.number("desirable_weight", 1.0),
                             .undesirable_weight = o.number("undesirable_weight", 1.0)});
    });
  }

  OfflineMicro prepare(const json& micro, const json& micros, Trainee& trainee) override {
    const json& batch = micro.at("batch");
    Batch rows = to_batch(unpadded_rows(batch));
    std::vector<float> desirable;
    for (const json& label : batch.at("label")) desirable.push_back(label.get<bool>() ? 1.F : 0.F);
    rows.set(rlhf::kDesirable, desirable);
    if (batch.contains("KL_input_ids"))
      rows.set(rlhf::kKlEstimate, std::vector<float>(desirable.size(), kl_estimate(batch, trainee)));
    return mean_of_micros(train::with_log_probs(reference_, rows, batch::kReferenceLogProbs, {}), micros.size());
  }

  std::map<std::string, std::string> metric_names() const override {
    return {{"rewards/chosen", "rewards/chosen"}, {"rewards/rejected", "rewards/rejected"}};
  }

 private:
  // Mean log-ratio of answers to other prompts, at least 0.
  float kl_estimate(const json& batch, Trainee& trainee) {
    Batch rows = to_batch(unpadded_rows(batch, "KL_"));
    rows = train::with_log_probs(trainee.model(), rows, batch::kLogProbs, {});
    rows = train::with_log_probs(reference_, rows, batch::kReferenceLogProbs, {});
    double sum = 0;
    for (float x : at_trainable(rows, batch::kLogProbs)) sum += x;
    for (float x : at_trainable(rows, batch::kReferenceLogProbs)) sum -= x;
    return static_cast<float>(std::max(0.0, sum / static_cast<double>(rows.rows())));
  }

  model::Model reference_;
};

// Pairs without a reference. ORPO's likelihood covers the prompt too.
class ReferenceFreeTask : public OfflineTask {
 public:
  ReferenceFreeTask(rlhf::Loss loss, bool with_prompt) : with_prompt_(with_prompt) { loss_ = std::move(loss); }

  OfflineMicro prepare(const json& micro, const json& micros, Trainee&) override {
    std::vector<TokenRow> pairs =
        interleaved(unpadded_rows(micro.at("batch"), "chosen_"), unpadded_rows(micro["batch"], "rejected_"));
    std::vector<std::vector<float>> completion;
    for (TokenRow& row : pairs) {
      completion.emplace_back(row.trainable.begin(), row.trainable.end());
      if (with_prompt_) std::fill(row.trainable.begin() + 1, row.trainable.end(), 1);
    }
    Batch rows = to_batch(pairs);
    rows.set_ragged(rlhf::kCompletion, completion);
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
  bool with_prompt_;
};

rlhf::Loss cpo_loss_of(const Options& o) {
  return known("cpo", o, [&] {
    return rlhf::cpo_loss({.loss_type = o.text("loss_type", "sigmoid"),
                           .beta = o.number("beta", 0.1),
                           .label_smoothing = o.number("label_smoothing", 0.0),
                           .simpo_gamma = o.number("simpo_gamma", 0.5),
                           .cpo_alpha = o.number("cpo_alpha", 1.0)});
  });
}

}  // namespace

std::unique_ptr<OfflineTask> make_further_task(const std::string& kind, const Options& options, const json& golden,
                                               const ModelShelf& shelf) {
  if (kind == "kto") return std::make_unique<KtoTask>(options, golden, shelf);
  if (kind == "orpo") return std::make_unique<ReferenceFreeTask>(rlhf::orpo_loss({options.number("beta", 0.1)}), true);
  if (kind == "cpo") return std::make_unique<ReferenceFreeTask>(cpo_loss_of(options), false);
  throw UnknownKind("trainer " + golden.value("trainer", std::string("without a name")), false);
}

}  // namespace collimate::golden

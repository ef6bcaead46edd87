#include "tests/golden/offline.h"

#include "collimate/base/error.h"
#include "collimate/batch/padding.h"
#include "collimate/rlhf/loss/list.h"
#include "collimate/rlhf/prompt/divergence_region.h"
#include "collimate/train/scoring.h"

namespace collimate::golden {
namespace {

// Divides by the label count of all micro-batches of the step.
class SftTask : public OfflineTask {
 public:
  explicit SftTask(const Options& options) { loss_ = loss_of("sft", options); }

  OfflineMicro prepare(const json& micro, const json& micros, Trainee&) override {
    OfflineMicro out{.rows = to_batch(unpadded_rows(micro.at("batch")))};
    if (micro.contains("num_items_in_batch") && micro["num_items_in_batch"].is_number()) {
      out.counts.tokens = micro["num_items_in_batch"];
    } else {
      for (const json& one : micros)
        out.counts.tokens += train::count_rows(to_batch(unpadded_rows(one.at("batch")))).tokens;
    }
    out.counts.rows = static_cast<double>(out.rows.rows());
    return out;
  }
};

class DpoTask : public OfflineTask {
 public:
  DpoTask(const Options& options, const json& golden, const ModelShelf& shelf) : reference_(golden, options, shelf) {
    loss_ = loss_of("dpo", options);
  }

  OfflineMicro prepare(const json& micro, const json& micros, Trainee&) override {
    const Batch rows = to_batch(interleaved(unpadded_rows(micro.at("batch"))));
    return mean_of_micros(train::with_log_probs(reference_.model(), rows, batch::kReferenceLogProbs, {}),
                          micros.size());
  }

  void stepped(size_t step, Trainee& trainee) override { reference_.follow(step, trainee); }

  std::map<std::string, std::string> metric_names() const override {
    return {{"rewards/chosen", "rewards/chosen"},
            {"rewards/rejected", "rewards/rejected"},
            {"rewards/margins", "rewards/margins"},
            {"rewards/accuracies", "rewards/accuracies"}};
  }

 private:
  Reference reference_;
};

// The score is read at the last token that is not padding, so rows end there; where the answers' tokens are compared
// one by one, each pair has its own padding, as in a run.
class RewardTask : public OfflineTask {
 public:
  explicit RewardTask(const Options& options) : pad_(static_cast<int32_t>(options.number("pad", -1))) {
    loss_ = loss_of("reward", options);
  }

  std::string head() const override { return "score"; }

  OfflineMicro prepare(const json& micro, const json& micros, Trainee& trainee) override {
    const json& batch = micro.at("batch");
    std::vector<TokenRow> halves = unpadded_rows(batch);
    if (loss_.reads(batch::kUnpaddedTokens)) {
      const int64_t vocabulary = trainee.model().shape().vocabulary;
      if (pad_ < 0 || pad_ >= vocabulary)
        throw base::InputError(
            base::expectation("hyper.pad", fmt::format("an id below {}", vocabulary), std::to_string(pad_)));
      return mean_of_micros(padded_pairs(interleaved(halves)), micros.size());
    }
    for (TokenRow& row : halves) {
      while (row.ids.size() > 1 && row.ids.back() == pad_) row.ids.pop_back();
      row.trainable.assign(row.ids.size(), 0);
    }
    Batch rows = to_batch(interleaved(halves));
    std::vector<float> margins;
    for (const json& margin : batch.value("margin", json::array()))
      margins.insert(margins.end(), 2, margin.get<float>());
    margins.resize(halves.size());
    rows.set(rlhf::kMargin, margins);
    return mean_of_micros(rows, micros.size());
  }

  std::map<std::string, std::string> metric_names() const override {
    return {{"accuracy", "reward/accuracy"}, {"margin", "reward/margin"}, {"mean_reward", "reward/mean"}};
  }

 private:
  Batch padded_pairs(const std::vector<TokenRow>& rows) const {
    std::vector<std::vector<int32_t>> ids;
    std::vector<std::vector<uint8_t>> trainable;
    for (const TokenRow& row : rows) {
      ids.push_back(row.ids);
      trainable.push_back(row.trainable);
    }
    const std::vector<int64_t> unpadded = rlhf::pad_pairs(ids, trainable, pad_);
    std::vector<TokenRow> padded;
    for (size_t r = 0; r < rows.size(); ++r) padded.push_back({ids[r], trainable[r]});
    Batch out = to_batch(padded);
    out.set(batch::kUnpaddedTokens, unpadded);
    return out;
  }

  int32_t pad_;
};

// Labels stand at the tokens that end a step.
class StepTask : public OfflineTask {
 public:
  explicit StepTask(const Options& options) { loss_ = loss_of("process_reward", options); }

  std::string head() const override { return "score"; }

  OfflineMicro prepare(const json& micro, const json& micros, Trainee&) override {
    const json& batch = micro.at("batch");
    Batch rows = to_batch(unpadded_rows(batch));
    std::vector<std::vector<float>> right;
    for (const json& labels : batch.at("labels")) {
      right.emplace_back();
      for (const json& label : labels)
        if (label != -100) right.back().push_back(label.get<float>());
    }
    set_at_trainable(rows, rlhf::kStepRight, right);
    return mean_of_micros(rows, micros.size());
  }
};

}  // namespace

OfflineMicro mean_of_micros(Batch rows, size_t micros) {
  const auto n = static_cast<double>(micros);
  const batch::GlobalCounts counts = train::count_rows(rows) * n;
  return {std::move(rows), counts, n};
}

std::unique_ptr<OfflineTask> make_offline_task(const std::string& kind, const Options& options, const json& golden,
                                               const ModelShelf& shelf) {
  if (kind == "sft") return std::make_unique<SftTask>(options);
  if (kind == "dpo") return std::make_unique<DpoTask>(options, golden, shelf);
  if (kind == "reward") return std::make_unique<RewardTask>(options);
  if (kind == "process_reward") return std::make_unique<StepTask>(options);
  if (kind == "kto") return make_kto_task(options, golden, shelf);
  if (kind == "distill") return make_distillation_task(options);
  if (kind == "orpo" || kind == "cpo") return make_reference_free_task(kind, options);
  throw UnknownKind("trainer " + kind, false);
}

}  // namespace collimate::golden

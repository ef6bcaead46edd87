// Goldens of shape batches + variants: every variant of the DPO loss trains from the same weights on the same batches.
#include <fmt/format.h>

#include <algorithm>

#include "collimate/base/error.h"
#include "collimate/train/scoring.h"
#include "tests/golden/offline.h"
#include "tests/golden/place.h"
#include "tests/golden/replay.h"
#include "tests/golden/rows.h"
#include "tests/golden/variant.h"

namespace collimate::golden {
namespace {

// One variant of the loss, trained from the file's weights on the file's batches.
class VariantReplay {
 public:
  VariantReplay(const json& golden, const Options& options, const std::vector<Batch>& batches, const ModelShelf& shelf)
      : options_(options),
        batches_(batches),
        loss_(loss_of("dpo", options)),
        trainee_(shelf.open(golden["hyper"].at("model"), "lm", true), learner_options(options)) {
    if (options.flag("sync_ref_model", false))
      throw UnknownKind("variants with sync_ref_model", is_required("dpo", options));
  }

  Outcome run(const std::string& name, const json& variant) {
    trainee_.zero_gradients();
    for (const json& recorded : variant["steps"]) has_null_norm_ |= !has_norm(recorded);
    for (size_t s = 0; s < variant["steps"].size(); ++s) step(s, variant["steps"][s]);
    const json& last = object_or_empty(variant, "final");
    trainee_.compare_parameters(object_or_empty(last, "params"), "final", comparison_);
    return outcome_of(name, comparison_);
  }

 private:
  static bool has_norm(const json& recorded) {
    return recorded.contains("grad_norm") && recorded["grad_norm"].is_number();
  }

  // Micro-batches that a recorded step holds: one where steps without a gradient norm say that accumulation goes on.
  size_t micros_in(const json& recorded, size_t window) const {
    if (recorded.contains("micro") && recorded["micro"].is_array()) return recorded["micro"].size();
    return has_null_norm_ ? 1 : window;
  }

  void step(size_t s, const json& recorded) {
    const Tolerance tolerance = tolerance_at(s);
    const auto window = static_cast<size_t>(std::max(1.0, options_.number("gradient_accumulation_steps", 1)));
    const size_t micros = micros_in(recorded, window);
    double mean = 0;
    for (size_t m = 0; m < micros; ++m) {
      const double loss = micro_batch(s, recorded, static_cast<double>(window));
      mean += loss / static_cast<double>(micros);
      if (recorded.contains("micro") && recorded["micro"].is_array())
        comparison_.loss(fmt::format("loss, step {}.{}", s + 1, m + 1), loss, recorded["micro"][m].at("loss"),
                         tolerance.loss);
    }
    if (recorded.contains("loss") && !recorded["loss"].is_null())
      comparison_.loss(fmt::format("loss, step {}", s + 1), mean, recorded["loss"], tolerance.loss);
    if (!has_norm(recorded)) return;
    comparison_.relative(fmt::format("gradient norm, step {}", s + 1), trainee_.step(recorded.at("lr")),
                         recorded["grad_norm"], tolerance.norm);
    trainee_.zero_gradients();
  }

  // The next batch's loss; its gradient counts for one of the `window` micro-batches of an update.
  double micro_batch(size_t s, const json& recorded, double window) {
    if (next_ == batches_.size())
      throw base::InputError(base::expectation(fmt::format("steps[{}]", s), "a batch for each of its micro-batches",
                                               fmt::format("{} batches in all", batches_.size())));
    const OfflineMicro micro = mean_of_micros(batches_[next_++], static_cast<size_t>(window));
    const MicroReport report = trainee_.accumulate(micro.rows, loss_, micro.counts);
    const json& metrics = object_or_empty(recorded, "metrics");
    for (const auto& [name, value] : report.metrics)
      if (window == 1 && metrics.contains(name) && metrics[name].is_number())
        comparison_.loss(fmt::format("{}, step {}", name, s + 1), value, metrics[name], tolerance_at(s).token);
    return report.loss * micro.loss_scale;
  }

  const Options& options_;
  const std::vector<Batch>& batches_;
  rlhf::Loss loss_;
  Trainee trainee_;
  size_t next_ = 0;
  bool has_null_norm_ = false;
  Comparison comparison_;
};

}  // namespace

std::vector<Outcome> replay_dpo_variants(const std::string& name, const json& golden, const ModelShelf& shelf) {
  Reference reference(golden, Options(golden["hyper"]), shelf);
  std::vector<Batch> batches;
  for (const json& batch : golden["batches"])
    batches.push_back(train::with_log_probs(reference.model(), to_batch(interleaved(unpadded_rows(batch))),
                                            batch::kReferenceLogProbs, {}));
  std::vector<Outcome> outcomes;
  for (const auto& [key, variant] : golden["variants"].items()) {
    const std::string full = name + " " + key;
    try {
      const Options options = variant_options("dpo", key, variant, golden["hyper"]);
      outcomes.push_back(VariantReplay(golden, options, batches, shelf).run(full, variant));
    } catch (const UnknownKind& unknown) {
      outcomes.push_back({full, Verdict::kUnknown, unknown.what(), unknown.required});
    }
  }
  return outcomes;
}

}  // namespace collimate::golden

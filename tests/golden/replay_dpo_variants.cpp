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
#include "tests/golden/window.h"

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
    const json& steps = variant["steps"];
    const std::vector<size_t> micros = micros_of(steps);
    const std::vector<size_t> windows = window_lengths(steps, micros, declared_window());
    trainee_.zero_gradients();
    for (size_t s = 0; s < steps.size(); ++s) step(s, steps[s], micros[s], windows[s]);
    const json& last = object_or_empty(variant, "final");
    trainee_.compare_parameters(object_or_empty(last, "params"), "final", comparison_);
    return outcome_of(name, comparison_);
  }

 private:
  static bool lists_micros(const json& recorded) { return recorded.contains("micro") && recorded["micro"].is_array(); }

  size_t declared_window() const {
    return static_cast<size_t>(std::max(1.0, options_.number("gradient_accumulation_steps", 1)));
  }

  // Micro-batches of each step: those that it lists; else one, where steps without a gradient norm say that
  // accumulation goes on; else those of an update, of which the file's last may have fewer.
  std::vector<size_t> micros_of(const json& steps) const {
    const bool goes_on = !std::all_of(steps.begin(), steps.end(), has_norm);
    std::vector<size_t> micros;
    size_t left = batches_.size();
    for (const json& recorded : steps) {
      micros.push_back(goes_on ? 1 : std::max<size_t>(1, std::min(declared_window(), left)));
      if (lists_micros(recorded)) micros.back() = recorded["micro"].size();
      left -= std::min(left, micros.back());
    }
    return micros;
  }

  void step(size_t s, const json& recorded, size_t micros, size_t window) {
    const Tolerance tolerance = tolerance_at(s);
    double mean = 0;
    for (size_t m = 0; m < micros; ++m) {
      const double loss = micro_batch(s, window);
      mean += loss / static_cast<double>(micros);
      if (lists_micros(recorded))
        comparison_.loss(fmt::format("loss, step {}.{}", s + 1, m + 1), loss, recorded["micro"][m].at("loss"),
                         tolerance.loss);
    }
    if (recorded.contains("loss") && !recorded["loss"].is_null())
      comparison_.loss(fmt::format("loss, step {}", s + 1), mean, recorded["loss"], tolerance.loss);
    log_.compare(names_, object_or_empty(recorded, "metrics"), s, comparison_);
    if (!has_norm(recorded)) return;
    log_.clear();
    comparison_.relative(fmt::format("gradient norm, step {}", s + 1), trainee_.step(recorded.at("lr")),
                         recorded["grad_norm"], tolerance.norm);
    trainee_.zero_gradients();
  }

  // The next batch's loss; its gradient counts for one of the `window` micro-batches of an update.
  double micro_batch(size_t s, size_t window) {
    if (next_ == batches_.size())
      throw base::InputError(base::expectation(fmt::format("steps[{}]", s), "a batch for each of its micro-batches",
                                               fmt::format("{} batches in all", batches_.size())));
    const OfflineMicro micro = mean_of_micros(batches_[next_++], window);
    const MicroReport report = trainee_.accumulate(micro.rows, loss_, micro.counts);
    for (const auto& [name, value] : report.metrics) names_[name] = name;  // ours are TRL's
    log_.add(report.metrics);
    return report.loss * micro.loss_scale;
  }

  const Options& options_;
  const std::vector<Batch>& batches_;
  rlhf::Loss loss_;
  Trainee trainee_;
  size_t next_ = 0;
  std::map<std::string, std::string> names_;  // of metrics
  MetricLog log_;
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

// Goldens of shape batches + variants: every variant of the DPO loss trains from the same weights on the same batches.
#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "collimate/rlhf/loss/list.h"
#include "collimate/train/scoring.h"
#include "tests/golden/replay.h"
#include "tests/golden/rows.h"

namespace collimate::golden {
namespace {

// Losses that a variant's name says where its options do not: "hinge", "sigmoid+sft"; other words ("sigmoid+js") name
// what `over` holds.
json losses_in(const std::string& name) {
  static const std::vector<std::string> known = rlhf::loss_types("pairs");
  json losses = json::array();
  std::stringstream words(name.substr(0, name.find_first_of("| ")));
  for (std::string word; std::getline(words, word, '+');)
    if (losses.empty() || std::find(known.begin(), known.end(), word) != known.end()) losses.push_back(word);
  return losses;
}

// A variant's options. The divergence of `hyper` is that of the last variant made, so only `over` counts.
json overrides(const std::string& name, const json& variant, const json& hyper) {
  json over = variant.value("over", json::object());
  if (!over.contains("f_divergence_type")) over["f_divergence_type"] = "reverse_kl";
  const bool in_hyper = hyper.contains("loss_type") && hyper["loss_type"] != "per variant";
  if (!over.contains("loss_type") && !in_hyper) over["loss_type"] = losses_in(name);
  return over;
}

void step(Trainee& trainee, const rlhf::Loss& loss, const Batch& rows, size_t s, const json& recorded,
          Comparison& comparison) {
  const Tolerance tolerance = tolerance_at(s);
  trainee.zero_gradients();
  const MicroReport report = trainee.accumulate(rows, loss, train::count_rows(rows));
  const double norm = trainee.step(recorded.at("lr"));
  comparison.loss(fmt::format("loss, step {}", s + 1), report.loss, recorded.at("loss"), tolerance.loss);
  comparison.relative(fmt::format("gradient norm, step {}", s + 1), norm, recorded.at("grad_norm"), tolerance.norm);
  for (const auto& [name, value] : report.metrics)
    if (recorded.contains("metrics") && recorded["metrics"].contains(name))
      comparison.loss(fmt::format("{}, step {}", name, s + 1), value, recorded["metrics"][name], tolerance.token);
}

Outcome replay_variant(const std::string& name, const json& golden, const json& variant, const Options& options,
                       const std::vector<Batch>& batches, const ModelShelf& shelf) {
  if (options.flag("sync_ref_model", false) || options.number("gradient_accumulation_steps", 1) != 1)
    throw UnknownKind("variants with sync_ref_model or accumulation", false);
  const rlhf::Loss loss = loss_of("dpo", options);
  Trainee trainee(shelf.open(golden["hyper"].at("model"), "lm", true), learner_options(options));
  Comparison comparison;
  for (size_t s = 0; s < variant.at("steps").size(); ++s)
    step(trainee, loss, batches.at(s), s, variant["steps"][s], comparison);
  const json last = variant.value("final", json::object());
  if (last.contains("params")) trainee.compare_parameters(last["params"], "final", comparison);
  return outcome_of(name, comparison);
}

}  // namespace

std::vector<Outcome> replay_dpo_variants(const std::string& name, const json& golden, const ModelShelf& shelf) {
  if (trainer_kind(golden) != "dpo") throw UnknownKind("variants of " + golden.value("trainer", std::string()), false);
  Reference reference(golden, Options(golden["hyper"]), shelf);
  std::vector<Batch> batches;
  for (const json& batch : golden["batches"])
    batches.push_back(train::with_log_probs(reference.model(), to_batch(interleaved(unpadded_rows(batch))),
                                            batch::kReferenceLogProbs, {}));
  std::vector<Outcome> outcomes;
  for (const auto& [key, variant] : golden["variants"].items()) {
    const std::string full = name + " " + key;
    try {
      const Options options(golden["hyper"], overrides(key, variant, golden["hyper"]));
      outcomes.push_back(replay_variant(full, golden, variant, options, batches, shelf));
    } catch (const UnknownKind& unknown) {
      outcomes.push_back({full, Verdict::kUnknown, unknown.what(), unknown.required});
    }
  }
  return outcomes;
}

}  // namespace collimate::golden

#include "collimate/cli/loaded_model.h"

#include <utility>

#include "collimate/base/log.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/host/cpu.h"
#include "collimate/model/rounding.h"
#include "collimate/train/scoring.h"

namespace collimate::cli {

LoadedModel::LoadedModel(const std::string& directory, const ModelOptions& options, generate::ServiceOptions service)
    : pool_(host::core_count()),
      exec_{&pool_},
      tokenizer_(text::load_tokenizer(directory)),
      renderer_(*tokenizer_, text::make_chat_template(*tokenizer_, options.chat_template)),
      model_(
          model::load_huggingface(directory, "lm", {.compute = tensor::compute_type_of(options.compute.get())}, exec_),
          exec_),
      service_options_(std::move(service)) {
  log_rounding(exec_, model_.weights());
  service_options_.exec = exec_;
  service_options_.eos_ids = tokenizer_->info().stop_ids;
  service_options_.max_sequence_tokens = options.max_sequence_tokens;
  service_options_.cache_blocks = options.cache_blocks;
  service_options_.speculation_tokens = options.speculation.tokens();
  service_options_ = generate::resolved(service_options_, model_.shape());
}

std::unique_ptr<generate::Service> LoadedModel::service() {
  return std::make_unique<generate::Service>(model_, service_options_);
}

std::vector<float> LoadedModel::prompt_log_probs(std::span<const int32_t> ids, double temperature) {
  const std::vector<std::vector<int32_t>> rows = {{ids.begin(), ids.end()}};
  // Nothing predicts the first token.
  std::vector<std::vector<uint8_t>> trainable = {std::vector<uint8_t>(ids.size(), 1)};
  trainable[0][0] = 0;
  Batch batch(1);
  batch.set(batch::kUid, std::vector<int64_t>{0});
  batch.set_ragged(batch::kIds, rows);
  batch.set_ragged(batch::kTrainable, trainable);
  const train::ScoringOptions options{.temperature = temperature == 0 ? 1.F : static_cast<float>(temperature)};
  const Batch scored = train::with_log_probs(model_, batch, batch::kLogProbs, options);
  const auto row = scored.row(batch::kLogProbs, 0);
  return {row.begin(), row.end()};
}

void log_rounding(const tensor::Exec& exec, const model::Weights& weights) {
  if (weights.options().compute != tensor::ComputeType::kInt8) return;
  const model::RoundingReport report = model::int8_rounding(exec, weights);
  base::log_info("int8: {:.2f} % of the linear weights' root mean square is rounded away, at most {:.2f} % ({})",
                 100 * report.relative, 100 * report.most, report.most_of);
}

}  // namespace collimate::cli

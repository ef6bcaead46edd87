#include "collimate/cli/loaded_model.h"

#include <utility>

#include "collimate/base/log.h"
#include "collimate/host/cpu.h"
#include "collimate/host/hub_cache.h"
#include "collimate/model/kv_cache.h"

namespace collimate::cli {
namespace {

// The longest sequence is one that the cache holds by itself: a longer one could never run.
void limit_to_cache(generate::ServiceOptions& options) {
  const int64_t held = options.cache_blocks * model::KvCache::kBlockTokens + 1;  // the last token is never run
  if (options.max_sequence_tokens <= held) return;
  base::log_warning("{} cache_blocks hold {} of {} tokens; prompt and completion together are limited to that",
                    options.cache_blocks, held, options.max_sequence_tokens);
  options.max_sequence_tokens = held;
}

}  // namespace

LoadedModel::LoadedModel(const std::string& directory, const ModelOptions& options, generate::ServiceOptions service)
    : pool_(host::core_count()),
      exec_{&pool_},
      tokenizer_(text::load_tokenizer(host::model_directory(directory))),
      renderer_(*tokenizer_, text::make_chat_template(*tokenizer_, options.chat_template)),
      model_(
          model::load_huggingface(host::model_directory(directory), "lm",
                                  {.compute = tensor::compute_type_of(options.compute.get()), .mapped = true}, exec_),
          exec_),
      int8_error_(measured_int8(model_, exec_, *tokenizer_, options.measure_int8)),
      service_options_(std::move(service)) {
  model_.weights().pack_all();  // not in the first request
  service_options_.exec = exec_;
  service_options_.eos_ids = tokenizer_->info().stop_ids;
  service_options_.tokenizer = tokenizer_.get();
  service_options_.max_sequence_tokens = options.max_sequence_tokens;
  service_options_.cache_blocks = options.cache_blocks;
  service_options_.speculation_tokens = options.speculation.tokens();
  service_options_ = generate::resolved(service_options_, model_.shape(), model_.weights().options().compute);
  limit_to_cache(service_options_);
}

std::unique_ptr<generate::Service> LoadedModel::service() {
  return std::make_unique<generate::Service>(model_, service_options_);
}

std::unique_ptr<generate::PromptScore> LoadedModel::prompt_score(std::span<const int32_t> ids,
                                                                 const generate::SamplingParams& sampling) {
  return std::make_unique<generate::PromptScore>(model_, ids, sampling.temperature, sampling.top_log_probs);
}

}  // namespace collimate::cli

#include "collimate/cli/loaded_model.h"

#include <utility>

#include "collimate/base/log.h"
#include "collimate/cli/open_draft.h"
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
    : open_(directory, options.compute, options.chat, options.latent_cache),
      draft_(open_draft(options.speculation, open_)),
      int8_error_(measured_int8(open_.model, open_.exec, *open_.tokenizer, options.measure_int8)),
      service_options_(open_.complete(std::move(service))) {
  open_.model.weights().pack_all();  // not in the first request
  if (draft_ != nullptr) draft_->weights().pack_all();
  service_options_.max_sequence_tokens = options.max_sequence_tokens;
  service_options_.cache_blocks = options.cache_blocks;
  service_options_.kv_type = options.kv_cache_dtype.type();
  service_options_.speculation_tokens = options.speculation.tokens();
  service_options_.draft = draft_.get();
  service_options_ = generate::resolved(service_options_, open_.model.shape(), open_.model.weights().options().compute);
  limit_to_cache(service_options_);
}

std::unique_ptr<generate::Service> LoadedModel::service() {
  return std::make_unique<generate::Service>(open_.model, service_options_);
}

std::unique_ptr<generate::PromptScore> LoadedModel::prompt_score(std::span<const int32_t> ids,
                                                                 const generate::SamplingParams& sampling) {
  return std::make_unique<generate::PromptScore>(open_.model, ids, sampling.temperature, sampling.top_log_probs);
}

}  // namespace collimate::cli

#include "collimate/cli/loaded_model.h"

#include <utility>

#include "collimate/base/log.h"
#include "collimate/generate/model_sampling.h"
#include "collimate/model/kv_cache.h"

namespace collimate::cli {
namespace {

// Limits sequences to what the cache can hold for one of them, because a longer one could never run.
void limit_to_cache(generate::ServiceOptions& options) {
  const int64_t held = options.cache_blocks * model::KvCache::kBlockTokens + 1;  // the last token needs no place
  if (options.max_sequence_tokens <= held) return;
  base::log_warning("{} cache_blocks hold {} of {} tokens; prompt and completion together are limited to that",
                    options.cache_blocks, held, options.max_sequence_tokens);
  options.max_sequence_tokens = held;
}

}  // namespace

void take_model_sampling(const std::string& directory, const ModelOptions& options, generate::SamplingOptions& asked) {
  if (options.generation_config != "auto") return;
  const generate::ModelSampling taken = generate::take_model_sampling(directory, asked);
  if (!taken.values.empty())
    base::log_info("tokens are drawn with {}, as {} says; --generation-config none leaves this out", taken.values,
                   taken.file);
}

LoadedModel::LoadedModel(const std::string& directory, const ModelOptions& options, const LayoutOptions& layout,
                         generate::ServiceOptions service)
    : models_({.directory = directory,
               .compute = options.compute,
               .chat = options.chat,
               .latent_cache = options.latent_cache,
               .speculation = options.speculation,
               .measure_int8 = options.measure_int8},
              layout),
      service_options_(std::move(service)) {
  models_.team().run([&](const RankPlace& place) {  // packs weights now, not during the first request
    RankModel& own = models_.of(place);
    own.open.model.weights().pack_all();
    if (own.draft != nullptr) own.draft->weights().pack_all();
  });
  service_options_.max_sequence_tokens = options.max_sequence_tokens;
  service_options_.cache_blocks = options.cache_blocks;
  service_options_.kv_type = options.kv_cache_dtype.type();
  service_options_.speculation_tokens = options.speculation.tokens();
  const RankPlace& first = models_.team().place(0);
  model::Model& model = models_.of(first).open.model;
  service_options_ = generate::resolved(models_.service(first, std::move(service_options_)), model.shape(),
                                        model.weights().options().compute);
  limit_to_cache(service_options_);
}

std::unique_ptr<generate::Completer> LoadedModel::service() {
  return std::make_unique<ServiceRanks>(models_, service_options_);
}

std::unique_ptr<PromptScoreRanks> LoadedModel::prompt_score(std::span<const int32_t> ids,
                                                            const generate::SamplingParams& sampling) {
  return std::make_unique<PromptScoreRanks>(models_, ids, sampling);
}

}  // namespace collimate::cli

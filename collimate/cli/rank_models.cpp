#include "collimate/cli/rank_models.h"

#include "collimate/base/log.h"
#include "collimate/cli/open_draft.h"

namespace collimate::cli {
namespace {

model::WeightsOptions weights_of(const LoadingChoice& choice, const LayoutOptions& layout, const RankPlace& place) {
  return {.compute = tensor::compute_type_of(choice.compute.get()),
          .reduction_chunks = static_cast<int>(layout.reduction_chunks.get()),
          .latent_cache = choice.latent_cache,
          .ranks = place.ranks};
}

}  // namespace

RankModels::RankModels(const LoadingChoice& choice, const LayoutOptions& layout)
    : team_(layout.layout(choice.directory)), models_(static_cast<size_t>(team_.size())) {
  team_.run([&](const RankPlace& place) {
    auto& made = base::at(models_, place.rank);
    made.reset(
        new RankModel{{choice.directory, choice.chat, weights_of(choice, layout, place), place.threads}, nullptr});
    made->draft = open_draft(choice.speculation, made->open);
  });
  RankModel& own = *models_.front();
  if (team_.size() == 1)
    int8_error_ = measured_int8(own.open.model, own.open.exec, *own.open.tokenizer, choice.measure_int8);
  else if (own.open.model.weights().options().compute == tensor::ComputeType::kInt8)
    base::log_info("int8: what it changes is measured on one device alone");
}

generate::ServiceOptions RankModels::service(const RankPlace& place, generate::ServiceOptions options) {
  RankModel& own = of(place);
  options.draft = own.draft.get();
  options.now_seconds = place.clock();
  return own.open.complete(std::move(options));
}

}  // namespace collimate::cli

#include "collimate/cli/open_model.h"

namespace collimate::cli {
namespace {

model::WeightsOptions mapped_alone(model::WeightsOptions weights) {
  weights.mapped = !weights.ranks.several();
  return weights;
}

}  // namespace

OpenModel::OpenModel(const std::string& directory, const rlhf::ChatTemplateOptions& chat, model::WeightsOptions weights,
                     int threads)
    : pool(threads),
      exec{&pool},
      tokenizer(text::load_tokenizer(directory)),
      renderer(*tokenizer, text::make_chat_template(*tokenizer, chat.choice, chat.kwargs.get())),
      model(model::load_huggingface(directory, "lm", mapped_alone(std::move(weights)), exec), exec) {}

generate::ServiceOptions OpenModel::complete(generate::ServiceOptions options) const {
  options.exec = exec;
  options.eos_ids = tokenizer->info().stop_ids;
  options.tokenizer = tokenizer.get();
  return options;
}

}  // namespace collimate::cli

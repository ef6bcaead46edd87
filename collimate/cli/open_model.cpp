#include "collimate/cli/open_model.h"

#include "collimate/base/error.h"
#include "collimate/host/base_model.h"
#include "collimate/shape/model_shape.h"

namespace collimate::cli {
namespace {

model::WeightsOptions mapped_alone(model::WeightsOptions weights) {
  weights.mapped = !weights.ranks.several();
  return weights;
}

// Returns the directory. Throws InputError if it holds a reward model, whose head gives a score instead of tokens.
const std::string& language_model(const std::string& directory) {
  if (shape::read_model_shape(host::base_directory(directory)).head == shape::Head::kLanguageModel) return directory;
  throw base::InputError(base::expectation(
      "model " + directory, "a language model, which completes prompts", "a reward model, which scores answers",
      fmt::format("collimate eval {} --data PAIRS.jsonl, with rows of chosen and rejected", directory)));
}

}  // namespace

OpenModel::OpenModel(const std::string& directory, const rlhf::ChatTemplateOptions& chat, model::WeightsOptions weights,
                     int threads)
    : pool(threads),
      exec{&pool},
      tokenizer(text::load_tokenizer(directory)),
      renderer(*tokenizer, text::make_chat_template(*tokenizer, chat.choice, chat.kwargs.get())),
      model(model::load_huggingface(language_model(directory), "lm", mapped_alone(std::move(weights)), exec), exec) {}

generate::ServiceOptions OpenModel::complete(generate::ServiceOptions options) const {
  options.exec = exec;
  options.eos_ids = tokenizer->info().stop_ids;
  options.tokenizer = tokenizer.get();
  return options;
}

}  // namespace collimate::cli

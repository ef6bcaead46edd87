#include "collimate/cli/open_model.h"

#include "collimate/host/cpu.h"

namespace collimate::cli {

OpenModel::OpenModel(const std::string& directory, const rlhf::ComputeOption& compute,
                     const rlhf::ChatTemplateOptions& chat, bool latent_cache)
    : pool(host::thread_count()),
      exec{&pool},
      tokenizer(text::load_tokenizer(directory)),
      renderer(*tokenizer, text::make_chat_template(*tokenizer, chat.choice, chat.kwargs.get())),
      model(
          model::load_huggingface(
              directory, "lm",
              {.compute = tensor::compute_type_of(compute.get()), .mapped = true, .latent_cache = latent_cache}, exec),
          exec) {}

generate::ServiceOptions OpenModel::complete(generate::ServiceOptions options) const {
  options.exec = exec;
  options.eos_ids = tokenizer->info().stop_ids;
  options.tokenizer = tokenizer.get();
  return options;
}

}  // namespace collimate::cli

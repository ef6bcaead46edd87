#pragma once

#include <memory>
#include <string>

#include "collimate/base/immovable.h"
#include "collimate/generate/kv_cache_option.h"
#include "collimate/generate/service.h"
#include "collimate/generate/speculation_options.h"
#include "collimate/host/core_pool.h"
#include "collimate/host/cpu.h"
#include "collimate/model/model.h"
#include "collimate/rlhf/modules/loading_options.h"
#include "collimate/text/chat_template.h"

namespace collimate::cli {

// How a model computes where it only generates: options of the section that has this as a base.
struct InferenceOptions {
  explicit InferenceOptions(base::Section* section)
      : compute(section, tensor::inference_type_words()),
        latent_cache(section),
        chat(section),
        kv_cache_dtype(section),
        speculation(section) {}

  rlhf::ComputeOption compute;
  rlhf::LatentCacheOption latent_cache;
  rlhf::ChatTemplateOptions chat;
  generate::KvCacheOption kv_cache_dtype;
  generate::SpeculationOptions speculation;
};

// A model directory with all that generating from it needs. One thread at a time.
struct OpenModel : private base::Immovable {
  // The weights of one rank are in the files' memory, of several in each one's own. InputError when the directory is no
  // model's, or the ranks cannot share it.
  OpenModel(const std::string& directory, const rlhf::ChatTemplateOptions& chat, model::WeightsOptions weights,
            int threads = host::thread_count());

  // Fills in the members that the model decides. They refer to this object.
  generate::ServiceOptions complete(generate::ServiceOptions options) const;

  host::CorePool pool;
  tensor::Exec exec;
  std::unique_ptr<text::Tokenizer> tokenizer;
  text::Renderer renderer;
  model::Model model;
};

}  // namespace collimate::cli

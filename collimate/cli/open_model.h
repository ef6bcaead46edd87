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

// InferenceOptions say how a model computes that only generates. They register as options of the section that has this
// struct as a base.
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

// An OpenModel is a model directory loaded with all that generating needs. Only one thread may use it at a time.
struct OpenModel : private base::Immovable {
  // Maps the weights from their files if there is one rank; each of several ranks copies its part into memory of its
  // own. Throws InputError when the directory holds no language model, or the ranks cannot share it.
  OpenModel(const std::string& directory, const rlhf::ChatTemplateOptions& chat, model::WeightsOptions weights,
            int threads = host::thread_count());

  // Returns `options` with threads, ends of sequence and tokenizer filled in. They refer to this object.
  generate::ServiceOptions complete(generate::ServiceOptions options) const;

  host::CorePool pool;
  tensor::Exec exec;
  std::unique_ptr<text::Tokenizer> tokenizer;
  text::Renderer renderer;
  model::Model model;
};

}  // namespace collimate::cli

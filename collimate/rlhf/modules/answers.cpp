#include "collimate/rlhf/modules/answers.h"

#include <algorithm>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/generate/engine.h"
#include "collimate/model/rope_table.h"

namespace collimate::rlhf {
namespace {

constexpr int64_t kAnswerTokens = 64;

}  // namespace

generate::ServiceOptions answer_service(int64_t row_tokens, const shape::ModelShape& shape,
                                        tensor::ComputeType compute) {
  constexpr int64_t kStepTokens = 256, kSequences = 4;  // few, so that the cache is small beside training's memory
  const int64_t longest = std::min(row_tokens + kAnswerTokens, model::longest_positions(shape, row_tokens));
  return generate::resolved(
      {.max_batch_tokens = kStepTokens, .max_batch_sequences = kSequences, .max_sequence_tokens = longest}, shape,
      compute);
}

Batch with_answers(Decoder& decoder, const DecoderOptions& options, std::vector<int32_t> stop_ids, const Batch& rows,
                   const std::function<void()>& progress) {
  std::vector<std::vector<int32_t>> prompts, answers(static_cast<size_t>(rows.rows()));
  std::vector<size_t> asked;
  for (int64_t r = 0; r < rows.rows(); ++r) {
    if (rows.get(kAsked, r) == 0) continue;
    const auto prompt = rows.row(batch::kIds, r).first(static_cast<size_t>(rows.get(batch::kPromptTokens, r)));
    asked.push_back(static_cast<size_t>(r));
    prompts.emplace_back(prompt.begin(), prompt.end());
  }
  const generate::SamplingParams greedy{.max_tokens = kAnswerTokens, .temperature = 0};
  generate::EngineOptions engine;
  engine.service = answer_service(options.row_tokens, decoder.model->shape(), weights_options(options).compute);
  engine.service.exec = decoder.exec;
  engine.service.eos_ids = std::move(stop_ids);
  const generate::EngineListener listener{.on_progress = [&](const generate::Progress&) {
    if (progress) progress();
  }};
  for (generate::Completion& completion : generate::generate_all(*decoder.model, prompts, greedy, engine, listener))
    answers[base::at(asked, completion.prompt)] = std::move(completion.tokens);
  Batch out = rows;
  out.set_ragged(kModelAnswer, answers);
  return out;
}

}  // namespace collimate::rlhf

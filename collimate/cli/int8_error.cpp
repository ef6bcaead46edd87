#include "collimate/cli/int8_error.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "collimate/base/immovable.h"
#include "collimate/base/log.h"
#include "collimate/generate/engine.h"
#include "collimate/generate/prompt_score.h"

namespace collimate::cli {
namespace {

constexpr int64_t kProbeTexts = 16, kProbeTokens = 8;  // few steps of many rows, as reading weights takes the time

// While an AsFloat32 lives, the weights compute in float32.
class AsFloat32 : private base::Immovable {
 public:
  explicit AsFloat32(model::Weights& weights) : weights_(weights), type_(weights.options().compute) {
    weights_.set_compute(tensor::ComputeType::kFloat32);
  }
  ~AsFloat32() { weights_.set_compute(type_); }

 private:
  model::Weights& weights_;
  const tensor::ComputeType type_;
};

std::vector<generate::Completion> draw_probe(model::Model& model, const tensor::Exec& exec, int32_t first) {
  generate::EngineOptions options{.samples_per_prompt = kProbeTexts, .purpose = "int8.probe"};
  options.service.exec = exec;
  generate::SamplingParams params{.max_tokens = std::min(kProbeTokens, model.shape().positions() - 1)};
  params.ignore_eos = true;
  const std::vector<std::vector<int32_t>> prompts = {{first}};
  const AsFloat32 exact(model.weights());
  return generate::generate_all(model, prompts, params, std::move(options));
}

void compare_log_probs(model::Model& model, const tensor::Exec& exec, int32_t first, Int8Error& out) {
  double sum = 0;
  for (const generate::Completion& text : draw_probe(model, exec, first)) {
    std::vector<int32_t> ids = {first};
    ids.insert(ids.end(), text.tokens.begin(), text.tokens.end());
    generate::PromptScore score(model, ids, 1.0);
    score.advance(static_cast<int64_t>(ids.size()));
    for (size_t t = 0; t < text.tokens.size(); ++t) {
      const double difference = std::abs(double{score.log_probs().log_probs[1 + t]} - text.log_probs[t]);
      sum += difference;
      out.log_prob_max = std::max(out.log_prob_max, difference);
      ++out.tokens;
    }
  }
  out.log_prob_mean = sum / static_cast<double>(out.tokens);
}

}  // namespace

std::optional<Int8Error> measured_int8(model::Model& model, const tensor::Exec& exec, const text::Tokenizer& tokenizer,
                                       bool log_probs) {
  if (model.weights().options().compute != tensor::ComputeType::kInt8) return std::nullopt;
  Int8Error out{.weights = model::int8_rounding(exec, model.weights())};
  base::log_info("int8: {:.2f} % of the linear weights' root mean square is rounded away, at most {:.2f} % ({})",
                 100 * out.weights.relative, 100 * out.weights.most, out.weights.most_of);
  if (!log_probs) return out;
  compare_log_probs(model, exec, tokenizer.bos_id().value_or(tokenizer.eos_id().value_or(0)), out);
  base::log_info("int8: log-probs of {} tokens that float32 draws change by {:.4f} on average, at most {:.4f}",
                 out.tokens, out.log_prob_mean, out.log_prob_max);
  return out;
}

nlohmann::ordered_json to_json(const Int8Error& error) {
  nlohmann::ordered_json out = {{"weights_error", error.weights.relative},
                                {"weights_error_most", error.weights.most},
                                {"weights_error_most_of", error.weights.most_of}};
  if (error.tokens == 0) return out;
  out["log_prob_error_mean"] = error.log_prob_mean;
  out["log_prob_error_max"] = error.log_prob_max;
  out["log_prob_tokens"] = error.tokens;
  return out;
}

}  // namespace collimate::cli

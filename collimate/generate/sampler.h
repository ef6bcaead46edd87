#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/sampler_stages.h"
#include "collimate/generate/sampling.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/sample.h"

namespace collimate::generate {

// One token drawn, and its log-softmax(logits / temperature) before stages and truncation.
struct Drawn {
  int32_t token = 0;
  float log_prob = 0.0F;
  std::vector<TokenLogProb> top;  // where asked for: the most likely tokens of the same distribution, in order
  std::vector<float> scores;      // as long as `top`, of a batch that scores: tensor::Draw::scores
};

// The draw for one position of one sample: which Philox uniform it reads.
struct DrawKey {
  uint64_t run_seed = 0;
  int64_t uid = 0;
  int64_t position = 0;  // of the drawn token in its sequence
};

// Draws for rows of logits that lie on a device, asked for one by one and made together. Each depends on what it was
// asked with alone: the stages' edits, then temperature and truncation, then the inverse CDF (tensor/ops/sample.h).
class DrawBatch {
 public:
  explicit DrawBatch(int64_t vocabulary) : vocabulary_(vocabulary) {}

  // From now on the most likely tokens are those after the stages' edits, with their scores.
  void score_top() { scores_top_ = true; }

  // After the row `logits` [V], which must be there until run().
  void add(const float* logits, const SamplingParams& params, const LogitHistory& history, const DrawKey& key);
  // Draws in the order of add(), valid until the next call. The batch is empty afterwards. GuardError as of sample_row.
  std::span<Drawn> run(const tensor::Exec& exec);

 private:
  struct Asked {
    const float* logits;
    tensor::SampleOptions options;
    float u;
    std::vector<tensor::LogitEdit> edits;
    std::vector<uint32_t> allowed;
    size_t top_count;
  };
  int64_t vocabulary_;
  bool scores_top_ = false;
  std::vector<Asked> asked_;
  std::vector<tensor::Sampled> sampled_;
  std::vector<tensor::Draw> draws_;
  std::vector<Drawn> drawn_;
};

}  // namespace collimate::generate

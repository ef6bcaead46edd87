#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collimate/generate/sampler_stages.h"
#include "collimate/generate/sampling.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/ops/sample.h"

namespace collimate::generate {

// One drawn token.
struct Drawn {
  int32_t token = 0;
  float log_prob = 0.0F;          // log-softmax(logits / temperature) before stages and truncation
  std::vector<TokenLogProb> top;  // if asked for: the most likely tokens of the same distribution, in order
  std::vector<float> scores;      // as long as `top` after score_top(), else empty: tensor::Draw::scores
};

// Identifies the draw for one position of one sample, hence the Philox uniform number that it reads.
struct DrawKey {
  uint64_t run_seed = 0;
  int64_t uid = 0;
  int64_t position = 0;  // of the drawn token in its sequence
};

// Draws tokens after rows of logits that lie on a device. Draws are asked for one by one and made together. Each
// depends on the arguments of its add() alone: the stages' edits come first, then temperature and truncation, then the
// inverse CDF (tensor/ops/sample.h).
class DrawBatch {
 public:
  explicit DrawBatch(int64_t vocabulary) : vocabulary_(vocabulary) {}

  // From now on the most likely tokens are chosen after the stages' edits and come with their scores.
  void score_top() { scores_top_ = true; }

  // Asks for a draw after the row `logits` [V], which must stay in place until run().
  void add(const float* logits, const SamplingParams& params, const LogitHistory& history, const DrawKey& key);
  // Makes the draws and returns them in the order of add(), valid until the next call. The batch is empty afterwards.
  // Throws GuardError as sample_row does.
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

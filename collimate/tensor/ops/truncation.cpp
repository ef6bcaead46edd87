#include "collimate/tensor/ops/truncation.h"

#include <algorithm>
#include <numeric>

namespace collimate::tensor {
namespace {

bool above(const float* x, int32_t a, int32_t b) { return x[a] > x[b] || (x[a] == x[b] && a < b); }

// Makes the list of all tokens. From then on `ids` says which are left.
void list_all(Candidates& row) {
  if (row.listed) return;
  row.listed = true;
  row.ids.resize(static_cast<size_t>(row.vocab));
  std::iota(row.ids.begin(), row.ids.end(), 0);
}

bool limits_top_k(const SampleOptions& options, int64_t vocab) { return options.top_k > 0 && options.top_k < vocab; }

// Keeps the top_k most likely tokens, ids ascending, by one selection.
void keep_top_k(const SampleOptions& options, Candidates& row) {
  list_all(row);
  const auto end = row.ids.begin() + std::min<int64_t>(options.top_k, static_cast<int64_t>(row.ids.size()));
  std::nth_element(row.ids.begin(), end, row.ids.end(), [&](int32_t a, int32_t b) { return above(row.x, a, b); });
  row.ids.erase(end, row.ids.end());
  std::sort(row.ids.begin(), row.ids.end());
}

// TopP puts tokens into buckets of 1/64 nat below the maximum. The bucket is a monotone function of x, so that only the
// bucket in which the wanted mass is reached has to be sorted.
class TopP {
 public:
  explicit TopP(const Candidates& row) : row_(row) {
    for (const int32_t id : row.ids) mass_[bucket(id)] += row.weights[id];
    for (const double mass : mass_) total_ += mass;
  }

  // Returns the smallest set of most likely candidates whose mass reaches top_p of their total; at least one.
  std::vector<int32_t> keep(float top_p) const {
    const double goal = static_cast<double>(top_p) * total_;
    double sum = 0;
    int last = 0;
    while (last + 1 < kBuckets && (mass_[last] == 0 || sum + mass_[last] < goal)) sum += mass_[last++];
    std::vector<int32_t> kept;
    std::vector<int32_t> edge;
    for (const int32_t id : row_.ids) {
      const int b = bucket(id);
      if (b < last) kept.push_back(id);
      if (b == last) edge.push_back(id);
    }
    std::sort(edge.begin(), edge.end(), [this](int32_t a, int32_t b) { return above(row_.x, a, b); });
    for (const int32_t id : edge) {
      kept.push_back(id);
      sum += row_.weights[id];
      if (sum >= goal) break;
    }
    return kept;
  }

 private:
  static constexpr int kBuckets = 2048;
  int bucket(int32_t id) const { return static_cast<int>(std::min((row_.max - row_.x[id]) * 64.0F, kBuckets - 1.0F)); }

  const Candidates& row_;
  double mass_[kBuckets] = {};
  double total_ = 0;
};

bool limits_mass(const SampleOptions& options, int64_t) { return options.top_p < 1.0F; }

void keep_top_p(const SampleOptions& options, Candidates& row) {
  list_all(row);
  row.ids = TopP(row).keep(options.top_p);
}

bool limits_share(const SampleOptions& options, int64_t) { return options.min_p > 0.0F; }

// The most likely token's weight is 1, so that weights can be compared with min_p directly.
void keep_min_p(const SampleOptions& options, Candidates& row) {
  if (row.listed) {
    std::erase_if(row.ids, [&](int32_t id) { return row.weights[id] < options.min_p; });
  } else {
    for (int64_t i = 0; i < row.vocab; ++i) row.weights[i] = row.weights[i] >= options.min_p ? row.weights[i] : 0.0F;
  }
}

constexpr TruncationStage kStagesOfTruncation[] = {
    {"top_k", limits_top_k, keep_top_k},
    {"top_p", limits_mass, keep_top_p},
    {"min_p", limits_share, keep_min_p},
};

// Keeps the weights of the listed tokens only.
void clear_others(const Candidates& row) {
  std::vector<float> kept;
  kept.reserve(row.ids.size());
  for (const int32_t id : row.ids) kept.push_back(row.weights[id]);
  std::fill(row.weights, row.weights + row.vocab, 0.0F);
  for (size_t i = 0; i < kept.size(); ++i) row.weights[row.ids[i]] = kept[i];
}

}  // namespace

std::span<const TruncationStage> truncation_stages() { return kStagesOfTruncation; }

void truncate_weights(const SampleOptions& options, const float* x, int64_t vocab, float max, float* weights) {
  Candidates row{.x = x, .weights = weights, .vocab = vocab, .max = max, .listed = false, .ids = {}};
  for (const TruncationStage& stage : truncation_stages()) {
    if (stage.active(options, vocab)) stage.apply(options, row);
  }
  if (row.listed) clear_others(row);
}

}  // namespace collimate::tensor

#include "collimate/model/head_parts.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/vocabulary.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/results.h"

namespace collimate::model {
namespace {

using tensor::device_data;
using tensor::HostEdit;

constexpr int64_t kLogitFloats = int64_t{1} << 22;
constexpr int64_t kFewestRows = 14;
constexpr int64_t kSums = shape::kVocabChunks;

// Takes rows [first, first + head.rows) of a request from the logits of the ranks' parts to results.
class RowBlock {
 public:
  // With `finds` the listed tokens are the most likely ones, which it finds; else the request names them.
  RowBlock(const tensor::Exec& exec, const TensorRanks& tensor, const tensor::LogProbHead& head, float* logits,
           int64_t first, bool finds)
      : exec_(exec),
        tensor_(tensor),
        head_(head),
        logits_(logits),
        first_(first),
        rows_(head.rows),
        finds_(finds),
        numbers_(rows_ * (4 + kSums) * static_cast<int64_t>(sizeof(float)), *exec.device) {}

  void run(LogProbResult& result) {
    tensor::part_logits(exec_, head_, {logits_, max(), reinterpret_cast<int32_t*>(argmax()), target()});
    find_largest(result.argmax);
    tensor::part_sums(exec_, head_, logits_, max(), nullptr, sums());
    tensor_.sum(exec_, target(), rows_ * (1 + kSums));
    normalize(result);
    if (result.listed.defined()) add_listed(result);
    if (!result.entropy.defined()) return;
    tensor::part_sums(exec_, head_, logits_, max(), log_sums(result), sums());
    tensor_.sum(exec_, sums(), rows_ * kSums);
    const HostEdit log_sum(exec_, log_sums(result), rows_), of_chunks(exec_, sums(), rows_ * kSums),
        entropy(exec_, device_data(result.entropy) + first_, rows_);
    for (int64_t r = 0; r < rows_; ++r) entropy[r] = tensor::entropy_of_sums(log_sum[r], of_chunks.data() + r * kSums);
  }

 private:
  // These lie on the device, [rows] each, and the sums [rows, kSums], which lie behind the targets' logits.
  float* argmax() { return numbers_.floats(); }
  float* max() { return argmax() + rows_; }
  float* place() { return max() + rows_; }
  float* target() { return place() + rows_; }
  float* sums() { return target() + rows_; }
  // A record has the maxima, and behind them the log sums.
  float* maxima(const LogProbResult& result) const { return device_data(result.record.normalizers) + first_; }
  float* log_sums(const LogProbResult& result) const { return maxima(result) + result.log_probs.size(0); }

  // Makes max() the maximum over all parts, and `result` the id of the token that has it: the lowest one if several do.
  void find_largest(const at::Tensor& result) {
    std::vector<float> own;
    {
      const HostEdit largest(exec_, max(), rows_);
      own.assign(largest.begin(), largest.end());
    }
    tensor_.max(exec_, max(), rows_);
    {
      const HostEdit largest(exec_, max(), rows_), at(exec_, argmax(), rows_), low(exec_, place(), rows_);
      for (int64_t r = 0; r < rows_; ++r)
        low[r] = base::at(own, r) == largest[r] ? -static_cast<float>(std::bit_cast<int32_t>(at[r]))
                                                : -std::numeric_limits<float>::infinity();
    }
    tensor_.max(exec_, place(), rows_);
    const HostEdit low(exec_, place(), rows_);
    const tensor::HostView<int32_t> out(exec_, device_data<int32_t>(result) + first_, rows_);
    for (int64_t r = 0; r < rows_; ++r) out[r] = std::isfinite(low[r]) ? static_cast<int32_t>(-low[r]) : 0;
  }

  void normalize(const LogProbResult& result) {
    const HostEdit largest(exec_, max(), rows_), wanted(exec_, target(), rows_),
        of_chunks(exec_, sums(), rows_ * kSums), log_prob(exec_, device_data(result.log_probs) + first_, rows_),
        maximum(exec_, maxima(result), rows_), log_sum(exec_, log_sums(result), rows_);
    for (int64_t r = 0; r < rows_; ++r) {
      const auto norm = tensor::normalizer_of_sums(largest[r], of_chunks.data() + r * kSums);
      maximum[r] = norm.max;
      log_sum[r] = norm.log_sum;
      log_prob[r] = norm.log_prob(wanted[r]);
    }
  }

  void add_listed(const LogProbResult& result) {
    const int64_t count = result.listed.size(1);
    int32_t* ids = device_data<int32_t>(result.listed_ids) + first_ * count;
    if (finds_) find_likely(ids, count);
    float* listed = device_data(result.listed) + first_ * count;
    const tensor::Buffer sums(rows_ * kSums * static_cast<int64_t>(sizeof(float)), *exec_.device);
    tensor::part_listed(exec_, head_, {count, ids}, {logits_, max()}, {listed, sums.floats()});
    tensor_.sum(exec_, listed, rows_ * count);
    tensor_.sum(exec_, sums.floats(), rows_ * kSums);
    const HostEdit largest(exec_, max(), rows_), log_sum(exec_, log_sums(result), rows_),
        of_chunks(exec_, sums.floats(), rows_ * kSums), log_probs(exec_, listed, rows_ * count),
        rest(exec_, device_data(result.rest) + first_, rows_);
    for (int64_t r = 0; r < rows_; ++r) {
      const tensor::RowNormalizer norm{largest[r], log_sum[r]};
      for (int64_t k = r * count; k < (r + 1) * count; ++k) log_probs[k] = norm.log_prob(log_probs[k]);
      rest[r] = tensor::rest_of_sums(norm.log_sum, of_chunks.data() + r * kSums);
    }
  }

  // Finds the largest logits among the largest ones of all parts.
  void find_likely(int32_t* ids, int64_t count) {
    const int64_t ranks = tensor_.place.ranks, width = 2 * count * ranks;
    const tensor::Buffer all(rows_ * width * static_cast<int64_t>(sizeof(float)), *exec_.device);
    tensor::zero(exec_, rows_ * width, all.floats());
    tensor::part_likely(exec_, head_, logits_, {count, all.floats() + 2 * count * tensor_.place.rank, width});
    tensor_.sum(exec_, all.floats(), rows_ * width);
    const HostEdit found(exec_, all.floats(), rows_ * width);
    const tensor::HostView<int32_t> out(exec_, ids, rows_ * count);
    std::vector<int32_t> tokens;
    std::vector<float> logits;
    for (int64_t r = 0; r < rows_; ++r) {
      tokens.clear(), logits.clear();
      for (int64_t rank = 0; rank < ranks; ++rank) {
        const float* part = found.data() + r * width + 2 * count * rank;
        for (int64_t k = 0; k < count; ++k)
          if (part[count + k] >= 0) logits.push_back(part[k]), tokens.push_back(static_cast<int32_t>(part[count + k]));
      }
      int32_t* row = out.data() + r * count;  // first gets places in `tokens`, which ascends by id, then the ids
      tensor::largest_ids(logits.data(), std::ssize(logits), 0, count, row);
      for (int64_t k = 0; k < count; ++k) row[k] = base::at(tokens, row[k]);
    }
  }

  const tensor::Exec& exec_;
  const TensorRanks& tensor_;
  const tensor::LogProbHead& head_;
  float* logits_;
  int64_t first_, rows_;
  bool finds_;
  tensor::Buffer numbers_;
};

// Returns how many rows are computed at once: about 16 MiB of logits of a head's part. It is equal on all ranks.
int64_t rows_of_parts(int64_t vocabulary, const shape::TensorRank& place) {
  return std::max(kFewestRows, kLogitFloats / (vocabulary / place.ranks));
}

}  // namespace

LogProbResult most_likely_of_parts(const tensor::Exec& exec, const TensorRanks& tensor, const tensor::LogProbHead& head,
                                   const LogProbRequest& request, std::shared_ptr<const tensor::Buffer> logits) {
  COLLIMATE_CHECK(request.listed_count == 0, "{} most likely tokens beside listed ones", request.top_count);
  LogProbRequest listing = request;
  listing.top_count = 0;
  listing.listed_count = request.top_count;
  LogProbResult result = log_probs_of_parts(exec, tensor, head, listing, std::move(logits));
  const tensor::HostTensor ids(exec, result.listed_ids.to(at::kFloat)), log_probs(exec, result.listed);
  for (size_t i = 0; i < ids.floats().size(); ++i)
    result.top.push_back({static_cast<int32_t>(ids.floats()[i]), log_probs.floats()[i]});
  for (auto row = result.top.begin(); row != result.top.end(); row += request.top_count)  // ascending by id until here
    std::stable_sort(row, row + request.top_count,
                     [](const auto& a, const auto& b) { return a.log_prob > b.log_prob; });
  result.listed_ids = result.listed = result.rest = at::Tensor();
  return result;
}

void make_listed(const tensor::Exec& exec, const LogProbRequest& request, LogProbResult& result) {
  if (request.listed_count == 0) return;
  const int64_t rows = request.hidden.size(0), count = request.listed_count;
  const auto given = static_cast<int64_t>(request.listed_ids.size());
  COLLIMATE_CHECK(given == 0 || given == rows * count, "{} listed tokens of {} rows of {}", given, rows, count);
  result.listed_ids = tensor::empty_result(exec, {rows, count}, at::kInt);
  result.listed = tensor::empty_result(exec, {rows, count});
  result.rest = tensor::empty_result(exec, {rows});
  tensor::copy_in(exec, request.listed_ids.data(), given * static_cast<int64_t>(sizeof(int32_t)),
                  device_data<int32_t>(result.listed_ids));
}

LogProbResult log_probs_of_parts(const tensor::Exec& exec, const TensorRanks& tensor, const tensor::LogProbHead& head,
                                 const LogProbRequest& request, std::shared_ptr<const tensor::Buffer> logits) {
  using tensor::empty_result;
  LogProbResult result;
  result.log_probs = empty_result(exec, {head.rows});
  result.argmax = empty_result(exec, {head.rows}, at::kInt);
  if (request.entropy) result.entropy = empty_result(exec, {head.rows});
  make_listed(exec, request, result);
  result.record = {empty_result(exec, {2, head.rows}), result.entropy, logits, result.listed_ids, result.rest};
  const int64_t step = rows_of_parts(head.whole, tensor.place), width = head.head->n;
  const tensor::Buffer passing(
      logits == nullptr ? std::min(step, head.rows) * width * static_cast<int64_t>(sizeof(float)) : 0, *exec.device);
  for (int64_t first = 0; first < head.rows; first += step) {
    tensor::LogProbHead some = head;
    some.rows = std::min(step, head.rows - first);
    some.hidden += first * head.hidden_stride;
    some.targets += first;
    float* here = logits == nullptr ? passing.floats() : logits->floats() + first * width;
    RowBlock(exec, tensor, some, here, first, request.listed_ids.empty()).run(result);
  }
  return result;
}

}  // namespace collimate::model

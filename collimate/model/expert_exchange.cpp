#include "collimate/model/expert_exchange.h"

#include <algorithm>
#include <span>

#include "collimate/base/at.h"
#include "collimate/tensor/ops/embedding.h"

namespace collimate::model {
namespace {

std::vector<size_t> transposed(const std::vector<size_t>& counts, size_t ranks) {
  std::vector<size_t> out(counts.size());
  for (size_t from = 0; from < ranks; ++from)
    for (size_t to = 0; to < ranks; ++to) out[to * ranks + from] = counts[from * ranks + to];
  return out;
}

}  // namespace

ExpertExchange::ExpertExchange(const tensor::Exec& exec, const shape::Experts& how, const ExpertRanks& ranks,
                               const int32_t* starts, int64_t rows)
    : exec_(exec), ranks_(ranks), own_rows_(rows), starts_(static_cast<size_t>(how.held() + 1)) {
  if (ranks.group == nullptr) {
    rows_ = ranks.place.ranks * (rows / how.per_token) * std::min(how.per_token, how.held());
  } else {
    const tensor::HostView<const int32_t> mine(exec, starts, how.count + 1);
    std::vector<int32_t> all(mine.size() * static_cast<size_t>(ranks.place.ranks));
    ranks.group->all_gather(std::as_bytes(mine.span()), comm::writable_bytes_of(all)).wait(ranks.deadline_seconds);
    place_rows(how, all);
  }
  starts_on_device_ = {exec_, std::span<const int32_t>(starts_)};
  by_expert_on_device_ = {exec_, std::span<const int32_t>(by_expert_)};
  by_rank_on_device_ = {exec_, std::span<const int32_t>(by_rank_)};
}

// Finds the places of rows, from all ranks' starts [ranks, E + 1]. Rows arrive sorted by rank and then by expert.
void ExpertExchange::place_rows(const shape::Experts& how, const std::vector<int32_t>& all_starts) {
  const int ranks = ranks_.place.ranks;
  const auto start = [&](int rank, int64_t expert) { return base::at(all_starts, rank * (how.count + 1) + expert); };
  std::vector<int32_t> next;  // by rank, the place of its next row for the experts here
  for (int from = 0; from < ranks; ++from) {
    next.push_back(static_cast<int32_t>(rows_));
    for (int to = 0; to < ranks; ++to) {
      const shape::Piece piece = shape::expert_piece(how, {to, ranks});
      counts_.push_back(static_cast<size_t>(start(from, piece.first + piece.count) - start(from, piece.first)));
    }
    rows_ += static_cast<int64_t>(base::at(counts_, from * ranks + ranks_.place.rank));
  }
  back_counts_ = transposed(counts_, static_cast<size_t>(ranks));
  by_rank_.resize(static_cast<size_t>(rows_));
  for (int64_t e = 0; e < how.held(); ++e) {
    base::at(starts_, e) = static_cast<int32_t>(by_expert_.size());
    for (int from = 0; from < ranks; ++from)
      for (int32_t i = start(from, how.first + e); i < start(from, how.first + e + 1); ++i) {
        base::at(by_rank_, base::at(next, from)) = static_cast<int32_t>(by_expert_.size());
        by_expert_.push_back(base::at(next, from)++);
      }
  }
  starts_.back() = static_cast<int32_t>(rows_);
}

void ExpertExchange::move(const tensor::HostRead& from, const tensor::HostEdit& to, const std::vector<size_t>& counts,
                          int64_t width) const {
  std::vector<size_t> bytes;
  for (const size_t count : counts) bytes.push_back(count * static_cast<size_t>(width) * sizeof(float));
  ranks_.group->all_to_all(std::as_bytes(from.span()), std::as_writable_bytes(to.span()), bytes)
      .wait(ranks_.deadline_seconds);
}

void ExpertExchange::bring(tensor::Arena& scratch, const float* from, int64_t width, float* to) const {
  const tensor::Arena::Mark mark = scratch.mark();
  float* came = scratch.take(rows_ * width);
  if (ranks_.group != nullptr) {
    move({exec_, from, own_rows_ * width}, {exec_, came, rows_ * width}, counts_, width);
    tensor::embedding(exec_, came, rows_, width, by_expert_on_device_.data(), rows_, to);
  }
  scratch.rewind(mark);
}

void ExpertExchange::take_back(tensor::Arena& scratch, const float* from, int64_t width, float* to) const {
  const tensor::Arena::Mark mark = scratch.mark();
  float* goes = scratch.take(rows_ * width);
  if (ranks_.group != nullptr) {
    tensor::embedding(exec_, from, rows_, width, by_rank_on_device_.data(), rows_, goes);
    move({exec_, goes, rows_ * width}, {exec_, to, own_rows_ * width}, back_counts_, width);
  }
  scratch.rewind(mark);
}

}  // namespace collimate::model

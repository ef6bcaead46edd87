#include "collimate/train/data_ranks.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/comm/values.h"
#include "collimate/tensor/ops/activation.h"
#include "collimate/tensor/ops/memory.h"
#include "collimate/tensor/ops/optimizer.h"

namespace collimate::train {
namespace {

template <class T>
int64_t bytes_of(int64_t count) {
  return count * static_cast<int64_t>(sizeof(T));
}

}  // namespace

DataRanks::DataRanks(model::Weights& weights, tensor::Exec exec, const TrainingRanks& ranks, int zero,
                     double deadline_seconds)
    : weights_(weights),
      exec_(exec),
      group_(ranks.copies != nullptr ? ranks.copies
             : ranks.rows != nullptr ? ranks.rows
                                     : ranks.context.group),
      rows_(ranks.rows),
      expert_copies_(ranks.expert_copies),
      zero_(group_ == nullptr ? 0 : zero),
      deadline_seconds_(deadline_seconds) {}

model::Share DataRanks::share(int segment) const {
  if (!weights_.trains_segment(segment)) return {};
  const int64_t floats = weights_.segment_floats(segment);
  const comm::Group* group = zero_ > 0 ? group_of(segment) : nullptr;
  return group == nullptr ? model::share_of(floats, 0, 1) : model::share_of(floats, group->rank(), group->size());
}

std::vector<model::Share> DataRanks::saved_shares() const {
  std::vector<model::Share> shares(static_cast<size_t>(weights_.segments()));
  for (const int s : weights_.changing_segments()) {
    const auto is_cut = [s](const shape::ParamSpec& spec) {
      return spec.segment == s && spec.cut >= 0 && !spec.absent();
    };
    if (weights_.is_second_copy(s)) continue;
    if (weights_.tensor().place.rank > 0 && std::ranges::none_of(weights_.params(), is_cut)) continue;
    const int64_t floats = weights_.segment_floats(s);
    const comm::Group* group = group_of(s);
    base::at(shares, s) = model::share_of(floats, group == nullptr ? 0 : group->rank(), size_of(group));
  }
  return shares;
}

std::vector<float> DataRanks::sum_of_rows(std::vector<float> values) const {
  if (rows_ != nullptr) rows_->all_reduce(values).wait(deadline_seconds_);
  return values;
}

std::vector<double> DataRanks::sum_large(const std::vector<double>& values) const {
  constexpr double kStep = 4096;
  std::vector<float> parts;
  for (const double value : values) {
    const double high = std::floor(value / kStep);
    parts.push_back(static_cast<float>(high));
    parts.push_back(static_cast<float>(value - high * kStep));
  }
  parts = sum_of_rows(std::move(parts));
  std::vector<double> sums;
  for (size_t i = 0; i < parts.size(); i += 2) sums.push_back(parts[i] * kStep + parts[i + 1]);
  return sums;
}

batch::GlobalCounts DataRanks::sum_counts(const batch::GlobalCounts& counts) const {
  if (rows_ == nullptr) return counts;
  const std::vector<double> sums = sum_large({counts.tokens, counts.rows, counts.chosen_tokens});
  return {sums[0], sums[1], sums[2]};
}

std::vector<float> DataRanks::join(const std::vector<float>& mine, int64_t& begin) const {
  if (rows_ == nullptr) return mine;
  std::vector<double> sizes(static_cast<size_t>(rows_->size()));
  base::at(sizes, rows_->rank()) = static_cast<double>(mine.size());
  sizes = sum_large(sizes);
  const auto first = sizes.begin() + rows_->rank();
  begin = static_cast<int64_t>(std::accumulate(sizes.begin(), first, 0.0));
  std::vector<float> all(static_cast<size_t>(std::accumulate(sizes.begin(), sizes.end(), 0.0)));
  std::copy(mine.begin(), mine.end(), all.begin() + begin);
  return sum_of_rows(std::move(all));
}

void DataRanks::zero_gradients() {
  if (!keeps_shares()) return weights_.zero_gradients();
  const tensor::MemoryScope tagged(weights_.options().tag + "/gradient");
  summed_.resize(static_cast<size_t>(weights_.segments()));
  for (int s = 0; s < weights_.segments(); ++s) {
    const int64_t count = share(s).count();
    tensor::Buffer& summed = base::at(summed_, s);
    if (summed.data() == nullptr) summed = tensor::Buffer(bytes_of<float>(count), *exec_.device);
    tensor::zero(exec_, count, summed.floats());
  }
}

void DataRanks::drop_gradients() {
  weights_.drop_gradients();
  for (tensor::Buffer& summed : summed_) summed.discard();
}

int64_t DataRanks::most_micro_batches(int64_t own) const {
  const bool meet = keeps_shares() || weights_.experts().several();
  return meet && group_ != nullptr ? comm::largest(*group_, own, deadline_seconds_) : own;
}

void DataRanks::segment_done(int segment) {
  if (!keeps_shares() || !weights_.trains_segment(segment) || is_at_both_ends(segment)) return;
  add_to_share(segment);
}

void DataRanks::add_to_share(int segment) {
  const model::Share mine = share(segment);
  const tensor::Buffer whole = weights_.take_gradient(segment);
  sum_copies(segment, whole.floats());
  sum_over_ranks(segment, {exec_, whole.floats(), whole.bytes() / static_cast<int64_t>(sizeof(float))});
  tensor::add(exec_, whole.floats() + mine.begin, mine.count(), base::at(summed_, segment).floats());
}

void DataRanks::sum_copies(int segment, float* gradient) const {
  if (!weights_.tensor().several()) return;
  for (size_t i = 0; i < weights_.params().size(); ++i) {
    const shape::ParamSpec& spec = weights_.params()[i];
    const auto is_copied = [](const shape::Piece& piece) { return piece.copies > 1; };
    if (spec.segment != segment || !weights_.trains(static_cast<int>(i)) ||
        std::ranges::none_of(spec.pieces, is_copied))
      continue;
    const tensor::HostEdit own(exec_, gradient + spec.offset, spec.count());
    std::vector<float> all(static_cast<size_t>(weights_.whole_params()[i].count()));
    shape::put_pieces(spec, own.span(), all);
    weights_.tensor().group->all_reduce(all).wait(deadline_seconds_);
    shape::take_pieces(spec, all, own.span());
  }
}

bool DataRanks::is_at_both_ends(int segment) const {
  const shape::StageRank& stage = weights_.stages().place;
  return segment == 0 && weights_.stages().several() && (stage.is_first() || stage.is_last()) &&
         weights_.trains_segment(0) && shape::is_linear(weights_.whole_shape(), weights_.whole_params().front());
}

void DataRanks::sum_ends() {
  if (!is_at_both_ends(0)) return;
  const shape::ParamSpec& embedding = weights_.params().front();
  const tensor::HostEdit gradient(exec_, weights_.param_gradient(0), embedding.count());
  weights_.stages().sum_ends(gradient.span());
}

void DataRanks::reduce_gradients() {
  sum_ends();
  if (!keeps_shares())
    for (const int s : weights_.changing_segments()) sum_copies(s, weights_.segment_gradient(s).data());
  if (group_ == nullptr) return;
  if (keeps_shares()) {
    if (is_at_both_ends(0)) add_to_share(0);
    return;
  }
  for (const int s : weights_.changing_segments()) sum_over_ranks(s, weights_.gradient(s));
}

void DataRanks::sum_over_ranks(int segment, const tensor::HostEdit& gradient) const {
  comm::Group* group = group_of(segment);
  if (group == nullptr) return;
  std::span<float> rest = gradient.span();
  if (const model::Share mine = share(segment); zero_ > 0 && mine.piece > 0) {
    const std::span<float> pieces = rest.first(static_cast<size_t>(mine.piece * group->size()));
    rest = rest.subspan(pieces.size());
    const std::span<float> own = pieces.subspan(static_cast<size_t>(mine.begin), static_cast<size_t>(mine.piece));
    group->reduce_scatter(pieces, own).wait(deadline_seconds_);
  }
  if (!rest.empty()) group->all_reduce(rest).wait(deadline_seconds_);
}

float* DataRanks::gradient(int segment) {
  if (!weights_.trains_segment(segment)) return nullptr;
  if (keeps_shares()) return base::at(summed_, segment).floats();
  return weights_.segment_gradient(segment).data() + share(segment).begin;
}

double DataRanks::gradient_norm() {
  const model::StageRanks& stages = weights_.stages();
  const bool cut = weights_.tensor().several() || weights_.experts().several();
  const std::vector<double> squares = stages.sum(cut ? std::vector{squares_of_pieces()} : squares_by_segment());
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

// Returns the sum of squares of each segment's gradient; 0 for segments of other stages.
std::vector<double> DataRanks::squares_by_segment() {
  std::vector<double> squares(static_cast<size_t>(weights_.segments()));
  for (const int s : weights_.changing_segments()) {
    if (weights_.is_second_copy(s)) continue;
    const model::Share mine = share(s);
    std::vector<double> sums(static_cast<size_t>(tensor::squares_chunks(weights_.segment_floats(s))));
    const auto first = static_cast<size_t>(mine.begin / tensor::kSquaresChunk);
    tensor::squares_of_chunks(exec_, gradient(s), mine.count(), sums.data() + first);
    exchange(s, comm::writable_bytes_of(sums), bytes_of<double>(mine.piece / tensor::kSquaresChunk));
    base::at(squares, s) = tensor::sum_of_chunks(std::move(sums));
  }
  return squares;
}

// Returns the sum of squares of floats [begin, end) of a segment's gradient, as far as they lie in this rank's share.
double DataRanks::squares_of(int segment, int64_t begin, int64_t end) {
  const model::Share mine = share(segment);
  begin = std::max(mine.begin, begin), end = std::min(mine.end, end);
  if (begin >= end) return 0;
  std::vector<double> sums(static_cast<size_t>(tensor::squares_chunks(end - begin)));
  tensor::squares_of_chunks(exec_, gradient(segment) + (begin - mine.begin), end - begin, sums.data());
  return tensor::sum_of_chunks(std::move(sums));
}

double DataRanks::squares_of_pieces() {
  double squares = squares_of_pieces(/*of_experts=*/false);
  if (weights_.experts().several()) squares += weights_.experts().sum(squares_of_pieces(/*of_experts=*/true));
  return squares;
}

// Returns the sum of squares over tensor ranks and copies. Of some parameters each tensor rank has its own pieces, of a
// few several ranks have the same pieces, and of all others each rank has the whole.
double DataRanks::squares_of_pieces(bool of_experts) {
  double pieces = 0, whole = 0;
  for (size_t i = 0; i < weights_.params().size(); ++i) {
    if (!weights_.trains(static_cast<int>(i)) || weights_.is_second_copy(weights_.params()[i].segment)) continue;
    const shape::ParamSpec& spec = weights_.params()[i];
    if (weights_.is_of_experts(spec.segment) != of_experts) continue;
    int64_t at = spec.offset;
    if (spec.cut < 0) whole += squares_of(spec.segment, at, at + spec.count());
    if (spec.cut == 1) pieces += squares_of(spec.segment, at, at + spec.count());
    if (spec.cut != 0) continue;
    for (const shape::Piece& piece : spec.pieces) {
      const int64_t begin = std::exchange(at, at + piece.count * (spec.count() / spec.sizes[0]));
      pieces += squares_of(spec.segment, begin, at) / static_cast<double>(piece.copies);
    }
  }
  const double squares = weights_.tensor().sum(pieces) + whole;
  comm::Group* group = of_experts ? expert_copies_ : group_;
  return zero_ == 0 || group == nullptr ? squares : comm::sum_in_order(*group, squares, deadline_seconds_);
}

void DataRanks::gather_values() {
  for (const int s : weights_.changing_segments())
    if (!weights_.is_shared(s))
      exchange(s, std::as_writable_bytes(weights_.master(s).span()), bytes_of<float>(share(s).piece));
}

void DataRanks::exchange(int segment, std::span<std::byte> all, int64_t piece_bytes) const {
  comm::Group* group = group_of(segment);
  if (zero_ > 0 && group != nullptr) model::exchange_pieces(*group, all, piece_bytes, deadline_seconds_);
}

}  // namespace collimate::train

// This file fills, gathers and sums up parameters of the whole model, of which each rank has a part.
#include <algorithm>
#include <array>

#include "collimate/base/at.h"
#include "collimate/model/initialize.h"
#include "collimate/model/weights_impl.h"

namespace collimate::model {

bool Weights::trains_ahead_of(int segment) const {
  return options().trained && std::ranges::any_of(whole_params(), [&](const shape::ParamSpec& spec) {
           return spec.runs_in < segment && is_changed_by_training(options().lora, spec);
         });
}

void Weights::fill(int index, const std::function<void(std::span<float> whole)>& make) {
  const shape::ParamSpec& spec = base::at(params(), index);
  const Impl::KeptRange kept = impl_->kept_of(index);
  if (spec.absent() || kept.count() == 0 || base::at(impl_->segments, spec.segment).is_of_base) return;
  const tensor::HostEdit out(impl_->exec, kept.values, kept.count());
  if (spec.cut < 0 && kept.count() == spec.count()) return make(out.span());
  std::vector<float> whole(static_cast<size_t>(base::at(whole_params(), index).count()));
  make(whole);
  std::vector<float> own(static_cast<size_t>(spec.cut < 0 ? 0 : spec.count()));
  if (spec.cut >= 0) shape::take_pieces(spec, whole, own);
  const std::span<const float> pieces = spec.cut < 0 ? whole : own;
  std::ranges::copy(pieces.subspan(static_cast<size_t>(kept.begin), out.span().size()), out.span().begin());
}

std::vector<float> Weights::gather(int index, const std::function<std::vector<float>()>& make) const {
  const shape::ParamSpec& whole = base::at(whole_params(), index);
  const int stage = shape::stage_of(whole, whole_shape(), stages().place);
  const int expert_rank = shape::expert_rank_of(whole, whole_shape(), experts().place.ranks);
  const Held held = hold(base::at(params(), index).segment);
  std::vector<float> values;
  if (experts().place.rank == expert_rank) {
    if (stages().place.rank == stage) values = tensor().gather(whole, make());
    if (tensor().place.rank == 0) values = stages().gather(stage, whole.count(), std::move(values));
  }
  if (tensor().place.rank > 0 || !stages().place.is_first()) return {};
  return experts().gather(expert_rank, whole.count(), std::move(values));
}

int Weights::expert_segment(int segment) const {
  if (!experts().several() || segment < 1 || segment > whole_shape().layers()) return -1;
  return first_of_experts() + segment - 1;
}

// Returns the numbers that this rank has of a parameter, at their places in the whole parameter, with 0 elsewhere,
// which adds nothing to a checksum. Of pieces that several tensor ranks have, those of the first of these ranks count.
std::vector<float> Weights::counted_numbers(int index) const {
  const shape::ParamSpec& spec = base::at(params(), index);
  std::vector<float> own = impl_->kept_numbers(index);
  if (spec.cut < 0) return own;
  std::vector<float> numbers(static_cast<size_t>(base::at(whole_params(), index).count()));
  shape::put_pieces(spec, own, numbers);
  const int64_t width = std::ssize(numbers) / base::at(whole_params(), index).sizes[0];
  for (const shape::Piece& piece : spec.pieces)
    if (tensor().place.rank % piece.copies != 0)
      std::fill_n(numbers.begin() + piece.first * width, piece.count * width, 0.0F);
  return numbers;
}

uint64_t Weights::checksum() const {
  // Entry 0 sums parameters that all expert ranks have, entry 1 those that this one alone has: whole ones, and pieces.
  std::array<uint64_t, 2> wholes = {}, all_pieces = {};
  std::array<uint64_t, 2> shared_whole = {}, shared_pieces = {};  // of shared segments, each rank has other numbers
  std::vector<float> numbers;
  for (size_t i = 0; i < params().size(); ++i) {
    const shape::ParamSpec& spec = params()[i];
    const auto index = static_cast<int>(i);
    if (spec.absent() || shape::is_second_copy(spec, whole_shape(), stages().place)) continue;
    const size_t whose = experts().several() && spec.expert >= 0 ? 1 : 0;
    uint64_t &whole = wholes.at(whose), &pieces = all_pieces.at(whose);
    if (options().mapped) {
      numbers.resize(static_cast<size_t>(spec.count()));
      read(index, 0, numbers);
      whole += param_checksum(spec.name, numbers);
    } else if (is_shared(spec.segment)) {
      (spec.cut < 0 ? shared_whole : shared_pieces).at(whose) += param_checksum(spec.name, counted_numbers(index));
    } else if (spec.cut < 0) {
      whole += param_checksum(spec.name, values(index).span());
    } else {
      pieces += param_checksum(spec.name, counted_numbers(index));
    }
  }
  const auto sum_of = [&](size_t whose, const DataShares& ranks) {
    const uint64_t pieces = tensor().sum(all_pieces.at(whose) + ranks.sum(shared_pieces.at(whose)));
    return wholes.at(whose) + ranks.sum(shared_whole.at(whose)) + pieces;
  };
  const uint64_t of_all = sum_of(0, shares());
  return stages().sum(of_all + experts().sum(sum_of(1, options().ranks.expert_shares)));
}

}  // namespace collimate::model

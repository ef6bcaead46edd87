// Parameters of the whole model, of which each rank has a part.
#include <algorithm>

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
  if (spec.absent() || kept.count() == 0) return;
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
  const int owner = shape::stage_of(whole, whole_shape(), stages().place.ranks);
  const Held held = hold(whole.segment);
  std::vector<float> values;
  if (stages().place.rank == owner) values = tensor().gather(whole, make());
  return tensor().place.rank == 0 ? stages().gather(owner, whole.count(), std::move(values)) : std::vector<float>();
}

// The numbers that this rank has of a parameter, at their place in the whole one, 0 elsewhere, which adds nothing. Of
// those that several tensor ranks have the first one counts.
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
  uint64_t whole = 0, pieces = 0, shared_whole = 0, shared_pieces = 0;
  std::vector<float> numbers;
  for (size_t i = 0; i < params().size(); ++i) {
    const shape::ParamSpec& spec = params()[i];
    const auto index = static_cast<int>(i);
    if (spec.absent() || shape::is_second_copy(spec, whole_shape(), stages().place)) continue;
    if (options().mapped) {
      numbers.resize(static_cast<size_t>(spec.count()));
      read(index, 0, numbers);
      whole += param_checksum(spec.name, numbers);
    } else if (is_shared(spec.segment)) {
      (spec.cut < 0 ? shared_whole : shared_pieces) += param_checksum(spec.name, counted_numbers(index));
    } else if (spec.cut < 0) {
      whole += param_checksum(spec.name, values(index).span());
    } else {
      pieces += param_checksum(spec.name, counted_numbers(index));
    }
  }
  whole += shares().sum(shared_whole);
  return stages().sum(whole + tensor().sum(pieces + shares().sum(shared_pieces)));
}

}  // namespace collimate::model

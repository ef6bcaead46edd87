// Parameters of the whole model, of which each rank has a part.
#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/model/initialize.h"
#include "collimate/model/weights.h"

namespace collimate::model {

bool Weights::trains_ahead_of(int segment) const {
  return options().trained && std::ranges::any_of(whole_params(), [&](const shape::ParamSpec& spec) {
           return spec.runs_in < segment && is_changed_by_training(options().lora, spec);
         });
}

void Weights::fill(int index, const std::function<void(std::span<float> whole)>& make) {
  const shape::ParamSpec& spec = base::at(params(), index);
  if (spec.absent()) return;
  const tensor::HostEdit out = edit(index);
  if (spec.cut < 0) return make(out.span());
  std::vector<float> whole(static_cast<size_t>(base::at(whole_params(), index).count()));
  make(whole);
  shape::take_pieces(spec, whole, out.span());
}

std::vector<float> Weights::gather(int index, const std::function<std::vector<float>()>& make) const {
  const shape::ParamSpec& whole = base::at(whole_params(), index);
  const int owner = shape::stage_of(whole, whole_shape(), stages().place.ranks);
  std::vector<float> values;
  if (stages().place.rank == owner) values = tensor().gather(whole, make());
  return tensor().place.rank == 0 ? stages().gather(owner, whole.count(), std::move(values)) : std::vector<float>();
}

uint64_t Weights::checksum() const {
  uint64_t whole = 0, pieces = 0;
  std::vector<float> numbers;
  for (size_t i = 0; i < params().size(); ++i) {
    const shape::ParamSpec& spec = params()[i];
    if (spec.absent() || shape::is_second_copy(spec, whole_shape(), stages().place)) continue;
    if (options().mapped) {
      numbers.resize(static_cast<size_t>(spec.count()));
      read(static_cast<int>(i), 0, numbers);
      whole += param_checksum(spec.name, numbers);
    } else if (spec.cut < 0) {
      whole += param_checksum(spec.name, values(static_cast<int>(i)).span());
    } else {  // what is not here is 0, which adds nothing
      numbers.assign(static_cast<size_t>(whole_params()[i].count()), 0);
      shape::put_pieces(spec, values(static_cast<int>(i)).span(), numbers);
      const int64_t width = whole_params()[i].count() / whole_params()[i].sizes[0];
      for (const shape::Piece& piece : spec.pieces)  // the first of those that have it counts it
        if (tensor().place.rank % piece.copies != 0)
          std::fill_n(numbers.begin() + piece.first * width, piece.count * width, 0.0F);
      pieces += param_checksum(spec.name, numbers);
    }
  }
  return stages().sum(whole + tensor().sum(pieces));
}

}  // namespace collimate::model

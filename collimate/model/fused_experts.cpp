#include "collimate/model/fused_experts.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/family.h"

namespace collimate::model {
namespace {

// The experts of one block.
class FusedBlock {
 public:
  FusedBlock(TensorDirectory& files, const shape::ModelShape& shape, int64_t layer, const std::string& directory)
      : files_(files),
        names_(shape::find_family(shape.family, directory).names),
        hidden_(shape.hidden),
        how_(base::at(shape.blocks, layer).mlp.experts),
        block_(fmt::format("{}{}.", names_.block, layer)),
        directory_(directory) {}

  void split() {
    if (const TensorEntry* router = find("mlp.gate.weight"); router != nullptr)
      files_.replace(*router, {renamed(*router, names_.router + ".weight")});
    split("mlp.experts.gate_up_proj", names_.expert_up, {how_.count, 2 * how_.intermediate, hidden_});
    split("mlp.experts.down_proj", {names_.expert_down}, {how_.count, hidden_, how_.intermediate});
  }

 private:
  // By the whole name, or as the base model alone is stored.
  const TensorEntry* find(const std::string& name) const {
    const TensorEntry* entry = files_.find(block_ + name);
    return entry != nullptr ? entry : files_.find(block_.substr(block_.find('.') + 1) + name);
  }
  TensorEntry renamed(TensorEntry entry, const std::string& name) const {
    entry.name = block_ + name;
    return entry;
  }

  // A tensor whose rows, expert by expert, are those of the named matrices.
  void split(const std::string& name, const std::vector<std::string>& matrices, const std::vector<int64_t>& sizes) {
    const TensorEntry* fused = find(name);
    if (fused == nullptr) return;
    if (fused->sizes != sizes)
      throw base::InputError(base::expectation(directory_ + " " + fused->name,
                                               fmt::format("[{}]", fmt::join(sizes, ", ")),
                                               fmt::format("[{}]", fmt::join(fused->sizes, ", "))));
    const auto each = static_cast<int64_t>(matrices.size());
    const size_t bytes = fused->data.size() / static_cast<size_t>(how_.count * each);
    std::vector<TensorEntry> parts;
    for (int64_t i = 0; i < how_.count * each; ++i)
      parts.push_back({fmt::format("{}{}{}.{}.weight", block_, names_.experts, i / each, base::at(matrices, i % each)),
                       fused->dtype,
                       {sizes[1] / each, sizes[2]},
                       fused->data.subspan(static_cast<size_t>(i) * bytes, bytes)});
    files_.replace(*fused, std::move(parts));
  }

  TensorDirectory& files_;
  const shape::ModuleNames& names_;
  int64_t hidden_;
  const shape::Experts& how_;
  std::string block_;
  const std::string& directory_;
};

}  // namespace

void split_fused_experts(TensorDirectory& files, const shape::ModelShape& shape, const std::string& directory) {
  for (int64_t layer = 0; layer < shape.layers(); ++layer)
    if (base::at(shape.blocks, layer).mlp.experts.count > 0) FusedBlock(files, shape, layer, directory).split();
}

}  // namespace collimate::model

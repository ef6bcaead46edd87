#include "collimate/model/fused_experts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/model/file_order.h"
#include "collimate/shape/family.h"

namespace collimate::model {
namespace {

// Splits the fused experts of one block.
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
  // Finds a tensor by its whole name, or by the name that it has where the base model is stored alone.
  const TensorEntry* find(const std::string& name) const {
    const TensorEntry* entry = files_.find(block_ + name);
    return entry != nullptr ? entry : files_.find(block_.substr(block_.find('.') + 1) + name);
  }
  TensorEntry renamed(TensorEntry entry, const std::string& name) const {
    entry.name = block_ + name;
    return entry;
  }

  // Splits a tensor whose rows, expert by expert, are those of the named matrices.
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

// Cuts the tensor of all experts into those of `specs`, one behind another.
void split_stack(TensorDirectory& files, const std::string& name, const std::vector<shape::ParamSpec>& specs,
                 const std::string& directory) {
  const TensorEntry* stack = files.find(name);
  if (stack == nullptr) stack = files.find(name.substr(name.find('.') + 1));
  if (stack == nullptr) return;  // match() reports that it is missing
  const int64_t count = std::ssize(specs);
  std::vector<int64_t> each = stack->upright ? specs.front().sizes : file_sizes(specs.front()), sizes = {count};
  sizes.insert(sizes.end(), each.begin(), each.end());
  if (stack->sizes != sizes)
    throw base::InputError(base::expectation(directory + " " + stack->name, fmt::format("[{}]", fmt::join(sizes, ", ")),
                                             fmt::format("[{}]", fmt::join(stack->sizes, ", "))));
  std::vector<TensorEntry> parts;
  const auto floats = static_cast<size_t>(specs.front().count());
  for (size_t e = 0; e < specs.size(); ++e) {
    parts.push_back(part_of(*stack, e * floats, floats));
    parts.back().name = specs[e].name;
    parts.back().sizes = each;
  }
  files.replace(*stack, std::move(parts));
}

bool has_stacks(const shape::ModelShape& shape) {
  return !shape::find_family(shape.family, "model family").names.stacked_up.empty();
}

void split_stacks(TensorDirectory& files, const shape::ModelShape& shape, const std::string& directory) {
  std::map<std::string, std::vector<shape::ParamSpec>> stacks;
  for (const shape::ParamSpec& spec : shape::param_specs(shape))
    if (!spec.stacked.empty()) stacks[spec.stacked].push_back(spec);
  for (const auto& [name, specs] : stacks) split_stack(files, name, specs, directory);
}

}  // namespace

void split_fused_experts(TensorDirectory& files, const shape::ModelShape& shape, const std::string& directory) {
  if (has_stacks(shape)) return split_stacks(files, shape, directory);
  for (int64_t layer = 0; layer < shape.layers(); ++layer)
    if (base::at(shape.blocks, layer).mlp.experts.count > 0) FusedBlock(files, shape, layer, directory).split();
}

}  // namespace collimate::model

#include "collimate/model/file_tensors.h"

#include <map>

#include "collimate/model/file_order.h"

namespace collimate::model {

int64_t FileTensor::count() const {
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  return total;
}

const std::string& name_in_file(const shape::ParamSpec& spec) {
  return spec.stacked.empty() ? spec.name : spec.stacked;
}

std::vector<FileTensor> file_tensors(std::span<const shape::ParamSpec> specs) {
  std::vector<FileTensor> tensors;
  std::map<std::string, size_t> stacks;
  for (size_t i = 0; i < specs.size(); ++i) {
    const shape::ParamSpec& spec = specs[i];
    const auto [at, is_new] = stacks.emplace(name_in_file(spec), tensors.size());
    if (is_new) tensors.push_back({name_in_file(spec), file_sizes(spec), {}});
    tensors[at->second].params.push_back(i);
  }
  for (FileTensor& tensor : tensors)
    if (!specs[tensor.params.front()].stacked.empty())
      tensor.sizes.insert(tensor.sizes.begin(), std::ssize(tensor.params));
  return tensors;
}

}  // namespace collimate::model

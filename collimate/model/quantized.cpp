#include "collimate/model/quantized.h"

#include <fmt/ranges.h>

#include <array>
#include <nlohmann/json.hpp>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/base/json.h"
#include "collimate/base/read_file.h"

namespace collimate::model {
namespace {

using base::expectation;
using base::InputError;
using nlohmann::json;

using BlockSize = std::array<int64_t, 2>;

int64_t blocks_of(int64_t size, int64_t block) { return size / block + (size % block == 0 ? 0 : 1); }

// Holds what config.json says of how the model's tensors were quantized.
class Quantization {
 public:
  explicit Quantization(const std::string& directory) : directory_(directory) {
    const std::string path = directory + "/config.json";
    const json config = base::parse_json(base::read_file(path), path, 1);
    where_ = path + " quantization_config";
    if (!config.contains("quantization_config") || config.at("quantization_config").is_null()) return;
    const json& section = config.at("quantization_config");
    const json method = section.is_object() ? section.value("quant_method", json()) : section;
    if (method == "mxfp4") return;  // join_mxfp4
    if (method != "fp8")
      throw InputError(expectation(where_ + ".quant_method", "fp8, mxfp4, or a model that is not quantized",
                                   method.dump(), "the model that this one was made from"));
    is_fp8_ = true;
    if (section.contains("weight_block_size") && !section.at("weight_block_size").is_null())
      read_block_size(section.at("weight_block_size"));
  }

  // Returns the entry's scales, which lie beside it in the files.
  BlockScales scales_of(const TensorDirectory& files, const TensorEntry& entry) const {
    if (!is_fp8_) throw InputError(expectation(where_, "quant_method fp8, as " + entry.name + " is F8_E4M3", "none"));
    if (entry.sizes.size() != 2)
      throw InputError(expectation(where(entry.name), "[rows, columns] of F8_E4M3",
                                   fmt::format("[{}]", fmt::join(entry.sizes, ", "))));
    const BlockSize block = block_size_.value_or(BlockSize{entry.sizes[0], entry.sizes[1]});
    return {find_numbers(files, entry), block[0], block[1], entry.sizes[1]};
  }

 private:
  std::string where(const std::string& name) const { return directory_ + " " + name; }

  void read_block_size(const json& sizes) {
    BlockSize block{};
    bool good = sizes.is_array() && sizes.size() == block.size();
    for (size_t i = 0; good && i < block.size(); ++i) {
      good = sizes[i].is_number_unsigned() && sizes[i].get<uint64_t>() - 1 < INT64_MAX;
      if (good) block.at(i) = sizes[i].get<int64_t>();
    }
    if (!good) throw InputError(expectation(where_ + ".weight_block_size", "[rows, columns] from 1 on", sizes.dump()));
    block_size_ = block;
  }

  const TensorEntry* find_numbers(const TensorDirectory& files, const TensorEntry& entry) const {
    for (const char* end : {"_scale_inv", "_scale"})
      if (const TensorEntry* numbers = files.find(entry.name + end); numbers != nullptr) {
        check_numbers(entry, *numbers);
        return numbers;
      }
    throw InputError(expectation(where(entry.name), entry.name + "_scale_inv beside it, as it is F8_E4M3", "none"));
  }

  void check_numbers(const TensorEntry& entry, const TensorEntry& numbers) const {
    check_scale_dtype(numbers, directory_);
    std::vector<int64_t> sizes;
    if (block_size_)
      for (size_t d = 0; d < entry.sizes.size(); ++d)
        sizes.push_back(blocks_of(entry.sizes[d], base::at(*block_size_, d)));
    if (block_size_ ? numbers.sizes == sizes : numbers.count() == 1) return;
    const std::string wanted = block_size_ ? fmt::format("[{}] for blocks of {} in [{}]", fmt::join(sizes, ", "),
                                                         fmt::join(*block_size_, " x "), fmt::join(entry.sizes, ", "))
                                           : "one number, as there is no weight_block_size";
    throw InputError(expectation(where(numbers.name), wanted, fmt::format("[{}]", fmt::join(numbers.sizes, ", "))));
  }

  const std::string& directory_;
  std::string where_;
  bool is_fp8_ = false;
  std::optional<BlockSize> block_size_;
};

// Drops scales of a layer's inputs, which files for engines with fp8 activations have.
void drop_input_scales(TensorDirectory& files, const std::string& name) {
  const std::string layer = name.substr(0, name.rfind('.') + 1);
  for (const char* end : {"input_scale", "activation_scale"})
    if (const TensorEntry* scale = files.find(layer + end); scale != nullptr) files.replace(*scale, {});
}

constexpr int64_t kMxBlock = 32;  // values that have a scale together
constexpr const char* kMxBlocks = "_blocks";
constexpr const char* kMxScales = "_scales";

bool is_mx_blocks(const TensorEntry& entry) { return entry.dtype == "U8" && entry.name.ends_with(kMxBlocks); }

// Returns the scales beside blocks, with their real dtype. They are then no longer a tensor of their own.
const TensorEntry* take_mx_scales(TensorDirectory& files, const TensorEntry& blocks, const std::string& directory) {
  const std::string name = blocks.name.substr(0, blocks.name.size() - std::string(kMxBlocks).size()) + kMxScales;
  const TensorEntry* found = files.find(name);
  std::vector<int64_t> sizes = blocks.sizes;
  const bool whole = sizes.size() >= 3 && sizes.back() == kMxBlock / 2;
  if (!whole)
    throw InputError(expectation(directory + " " + blocks.name, "[.., rows, columns / 32, 16] of U8",
                                 fmt::format("[{}]", fmt::join(sizes, ", "))));
  sizes.pop_back();
  if (found == nullptr || found->dtype != "U8" || found->sizes != sizes)
    throw InputError(expectation(
        directory + " " + name, fmt::format("[{}] of U8 beside {}", fmt::join(sizes, ", "), blocks.name),
        found == nullptr ? "none" : fmt::format("[{}] of {}", fmt::join(found->sizes, ", "), found->dtype)));
  TensorEntry scales = *found;
  scales.dtype = "F8_E8M0";
  files.replace(*found, {scales});
  found = files.find(name);
  files.replace(*found, {});
  return found;
}

}  // namespace

void join_mxfp4(TensorDirectory& files, const std::string& directory) {
  std::vector<const TensorEntry*> all;
  for (const auto& [name, entry] : files.entries())
    if (is_mx_blocks(*entry)) all.push_back(entry);
  for (const TensorEntry* blocks : all) {
    TensorEntry joined = *blocks;
    joined.name.resize(joined.name.size() - std::string(kMxBlocks).size());
    joined.dtype = kMxfp4;
    joined.upright = true;
    const TensorEntry* scales = take_mx_scales(files, *blocks, directory);
    joined.sizes.resize(joined.sizes.size() - 2);
    joined.sizes.push_back(scales->sizes.back() * kMxBlock);
    joined.scales = {scales, 1, kMxBlock, joined.sizes.back()};
    files.replace(*blocks, {joined});
  }
}

void attach_scales(TensorDirectory& files, const std::string& directory) {
  const Quantization quantization(directory);
  std::vector<const TensorEntry*> quantized;
  for (const auto& [name, entry] : files.entries())
    if (entry->dtype == "F8_E4M3") quantized.push_back(entry);
  for (const TensorEntry* entry : quantized) {
    TensorEntry scaled = *entry;
    scaled.scales = quantization.scales_of(files, *entry);
    files.replace(*scaled.scales.numbers, {});
    drop_input_scales(files, scaled.name);
    files.replace(*entry, {scaled});
  }
}

}  // namespace collimate::model

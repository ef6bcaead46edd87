#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/base_model.h"
#include "collimate/host/mapped_file.h"
#include "collimate/model/file_order.h"
#include "collimate/model/file_tensors.h"
#include "collimate/model/fused_experts.h"
#include "collimate/model/huggingface_check.h"
#include "collimate/model/peft_adapters.h"
#include "collimate/model/quantized.h"
#include "collimate/model/safetensors.h"
#include "collimate/model/weights.h"
#include "collimate/shape/family.h"
#include "collimate/shape/text_part.h"

namespace collimate::model {
namespace {

using base::expectation;
using base::InputError;
using shape::ParamSpec;

constexpr size_t kNamesInError = 4;

bool is_of_unused_block(const std::string& name, const shape::ModelShape& shape) {
  const std::string& blocks = shape::find_family(shape.family, "model family").names.block;
  for (int64_t block = shape.layers(); block < shape.layers() + shape.unused_blocks; ++block)
    if (name.starts_with(fmt::format("{}{}.", blocks, block))) return true;
  return false;
}

// Published files have more than the parameters: buffers of older versions, the head that was not asked for, and blocks
// that predict further tokens.
bool is_expected_surplus(const std::string& name, const shape::ModelShape& shape) {
  if (is_of_unused_block(name, shape)) return true;
  for (const char* end : {".attn.bias", ".attn.masked_bias", ".attention.bias", ".attention.masked_bias",
                          ".rotary_emb.inv_freq", "lm_head.weight", "embed_out.weight", "score.weight"})
    if (name.size() >= std::string(end).size() && name.ends_with(end)) return true;
  return false;
}

// The base model alone is stored without the first part of each name ("model.", "transformer.").
std::string without_first_part(const std::string& name) { return name.substr(name.find('.') + 1); }

// Some versions of transformers write the head of every family under one name.
const TensorEntry* find_entry(const TensorDirectory& files, const ParamSpec& spec) {
  const TensorEntry* entry = files.find(spec.name);
  if (entry == nullptr) entry = files.find(without_first_part(spec.name));
  if (entry != nullptr || spec.part != shape::Part::kHead) return entry;
  return files.find("lm_head" + spec.name.substr(spec.name.rfind('.')));
}

std::string list_names(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kNamesInError); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kNamesInError ? fmt::format("{} and {} more", text, names.size() - kNamesInError) : text;
}

void check_entry(const std::string& directory, const ParamSpec& spec, const TensorEntry& entry) {
  const std::vector<int64_t> sizes = entry.upright ? spec.sizes : file_sizes(spec);
  if (entry.sizes != sizes)
    throw InputError(expectation(directory + " " + entry.name, fmt::format("[{}]", fmt::join(sizes, ", ")),
                                 fmt::format("[{}]", fmt::join(entry.sizes, ", "))));
  check_dtype(entry, directory);
}

// Leaves only the tensors of the language model, under the names that they have in that model alone.
void keep_text_part(TensorDirectory& files) {
  const std::map<std::string, const TensorEntry*> all = files.entries();
  for (const auto& [name, entry] : all) {
    const std::optional<std::string> alone = shape::text_part_name(name);
    if (alone == name) continue;
    std::vector<TensorEntry> kept;
    if (alone) kept.emplace_back(*entry).name = *alone;
    files.replace(*entry, std::move(kept));
  }
}

// Throws InputError when the config says that the embedding is the head, but the files have a head with other values:
// then it is not known which of both is meant.
void check_tied_head(const std::string& directory, const TensorDirectory& files, shape::ModelShape shape) {
  if (!shape.tied_embeddings || shape.head != shape::Head::kLanguageModel) return;
  shape.tied_embeddings = false;
  const std::vector<ParamSpec> specs = shape::param_specs(shape);
  const TensorEntry* embedding = find_entry(files, specs.front());
  for (const ParamSpec& spec : specs) {
    if (spec.part != shape::Part::kHead || spec.kind == shape::ParamKind::kBias) continue;
    const TensorEntry* head = find_entry(files, spec);
    if (head == nullptr || embedding == nullptr) return;
    check_dtype(*head, directory);
    if (head->sizes == embedding->sizes && have_equal_values(*head, *embedding, directory)) return;
    throw InputError(expectation(directory + " " + head->name,
                                 "the values of " + embedding->name + ", as tie_word_embeddings is true", "others",
                                 "tie_word_embeddings: false in config.json to use them, or leaving them out"));
  }
}

std::unique_ptr<TensorDirectory> open_files(const std::string& directory, const shape::ModelShape& shape) {
  auto files = std::make_unique<TensorDirectory>(directory);
  if (!shape.text_part_of.empty()) keep_text_part(*files);
  join_mxfp4(*files, directory);
  split_fused_experts(*files, shape, directory);
  attach_scales(*files, directory);
  return files;
}

[[noreturn]] void throw_missing(const std::string& directory, size_t count,
                                const std::vector<const ParamSpec*>& missing) {
  if (missing.size() == 1 && missing.front()->part == shape::Part::kScore)
    throw InputError(expectation(directory, "score.weight, as a head that is not trained begins as its file", "none",
                                 "a model that recipe: reward has trained"));
  std::vector<std::string> names;
  for (const ParamSpec* spec : missing)
    if (std::ranges::count(names, name_in_file(*spec)) == 0) names.push_back(name_in_file(*spec));
  throw InputError(expectation(directory, fmt::format("{} tensors", count), "none named " + list_names(names)));
}

// Returns the entry of each parameter; null for a score or value head that a trained model begins with zeros.
// Everything is checked before memory is taken.
std::vector<const TensorEntry*> match(const std::string& directory, const TensorDirectory& files,
                                      const shape::ModelShape& shape, std::span<const ParamSpec> specs, bool trained) {
  std::vector<const TensorEntry*> entries;
  std::vector<const ParamSpec*> missing;
  std::vector<std::string> surplus;
  for (const ParamSpec& spec : specs) {
    entries.push_back(find_entry(files, spec));
    if (entries.back() != nullptr) {
      check_entry(directory, spec, *entries.back());
    } else if (!trained || spec.part != shape::Part::kScore) {
      missing.push_back(&spec);
    }
  }
  if (!missing.empty()) throw_missing(directory, file_tensors(specs).size(), missing);
  for (const auto& [name, entry] : files.entries())
    if (std::find(entries.begin(), entries.end(), entry) == entries.end() && !is_expected_surplus(name, shape))
      surplus.push_back(name);
  if (!surplus.empty())
    throw InputError(expectation(directory, "the tensors of its config.json alone", "also " + list_names(surplus)));
  return entries;
}

// Holds the files that a directory's weights are read from: its own or, for adapters, those of their model.
struct OpenFiles {
  // Opens the files and checks everything.
  OpenFiles(const std::string& named, const std::string& head, const WeightsOptions& options)
      : directory(host::base_directory(named)),
        shape(huggingface_shape(named, head, options)),
        files(open_files(directory, shape)),
        adapters(directory == named ? nullptr : std::make_unique<PeftAdapters>(named)),
        specs(shape::param_specs(shape)) {
    check_tied_head(directory, *files, shape);
    if (adapters != nullptr) {
      adapters->leave_out_images(shape);
      adapters->split_experts(shape);
      adapters->replace_saved(*files);
    }
    entries = match(directory, *files, shape, specs, options.trained);
    if (adapters != nullptr) adapters->check(model_params(shape, options.lora), entries, options.lora);
  }

  std::string directory;
  shape::ModelShape shape;
  std::unique_ptr<TensorDirectory> files;
  std::unique_ptr<PeftAdapters> adapters;  // null if the directory has none
  std::vector<ParamSpec> specs;
  std::vector<const TensorEntry*> entries;
};

// Reads the embeddings, of which a mapped model later reads single rows on demand, so that values that are not finite
// are refused now and not while a server answers. Pages that were read leave memory, as after packing.
void check_tables(const OpenFiles& from, const tensor::Exec& exec) {
  constexpr int64_t kAtOnce = int64_t{1} << 20;
  for (size_t i = 0; i < from.specs.size(); ++i) {
    const ParamSpec& spec = from.specs[i];
    if (spec.kind != shape::ParamKind::kEmbedding || shape::is_linear(from.shape, spec)) continue;
    const TensorEntry& entry = *from.entries[i];
    exec.parallel_for(entry.count(), kAtOnce, [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(std::min(kAtOnce, end - begin)));
      for (int64_t first = begin; first < end; first += kAtOnce) {
        const std::span<float> some = std::span(values).first(static_cast<size_t>(std::min(kAtOnce, end - first)));
        read_floats(part_of(entry, static_cast<size_t>(first), some.size()), from.directory, some);
        check_finite(entry, from.directory, some);
      }
    });
    host::forget_pages(entry.data);
  }
}

// Returns a parameter's values with what its adapter adds; an empty list on ranks that do not write.
std::vector<float> whole_values(const Weights& weights, int index) {
  return weights.gather(index, [&] { return merged_values(weights, index); });
}

void fill_tensor(const Weights& weights, const FileTensor& tensor, std::span<float> out) {
  const size_t each = out.size() / tensor.params.size();
  for (size_t i = 0; i < tensor.params.size(); ++i) {
    const size_t param = tensor.params[i];
    to_file_order(weights.whole_params()[param], whole_values(weights, static_cast<int>(param)),
                  out.subspan(i * each, each));
  }
}

std::vector<TensorToWrite> to_write(const Weights& weights, std::span<const FileTensor> tensors,
                                    const std::string& dtype) {
  std::vector<TensorToWrite> all;
  for (const FileTensor& tensor : tensors)
    all.push_back({tensor.name, tensor.sizes,
                   [&weights, &tensor](std::span<float> out) { fill_tensor(weights, tensor, out); }, dtype});
  return all;
}

template <class Counted>
int64_t bytes_in(const Counted& values, const std::string& dtype) {
  return values.count() * static_cast<int64_t>(dtype_bytes(dtype));
}

// Returns where each shard ends.
std::vector<size_t> shard_ends(std::span<const FileTensor> tensors, const FileForm& form) {
  std::vector<size_t> ends;
  int64_t bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int64_t more = bytes_in(tensors[i], form.dtype);
    if (i > 0 && bytes + more > form.shard_bytes) {
      ends.push_back(i);
      bytes = 0;
    }
    bytes += more;
  }
  ends.push_back(tensors.size());
  return ends;
}

void save_shards(const Weights& weights, const std::string& directory, std::span<const FileTensor> tensors,
                 const std::vector<size_t>& ends, const std::string& dtype) {
  nlohmann::json map;
  int64_t total = 0;
  for (size_t shard = 0, first = 0; shard < ends.size(); first = ends[shard++]) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, ends.size());
    const std::span<const FileTensor> own = tensors.subspan(first, ends[shard] - first);
    write_safetensors(directory + "/" + name, to_write(weights, own, dtype));
    for (const FileTensor& tensor : own) {
      map[tensor.name] = name;
      total += bytes_in(tensor, dtype);
    }
  }
  const nlohmann::json index = {{"metadata", {{"total_size", total}}}, {"weight_map", map}};
  host::write_file_atomically(directory + "/model.safetensors.index.json", index.dump(2) + "\n");
}

std::span<const ParamSpec> own_specs(const Weights& weights) {
  return std::span(weights.whole_params()).first(weights.own_params());
}

// Returns whether bf16 holds all values in the files; values of four bits count as such.
bool are_all_bfloat16(const TensorDirectory& files, std::span<const ParamSpec> specs) {
  return std::ranges::all_of(specs, [&](const ParamSpec& spec) {
    const TensorEntry* entry = find_entry(files, spec);
    return entry == nullptr || entry->dtype == "BF16" || entry->dtype == kMxfp4;  // files lack a new head
  });
}

// Returns the size of a shard: as large a share of `total` bytes as the largest of a directory's weight files has.
// Files of one tensor do not count, as they may be larger than a shard is meant to be.
int64_t shard_bytes_like(const std::string& directory, int64_t total) {
  const auto files = weight_files(directory);
  if (files.size() < 2) return INT64_MAX;
  int64_t largest = 1, all = 0;
  for (const auto& [path, names] : files) {
    int64_t bytes = 0;
    const auto file = open_tensor_file(path);
    for (const TensorEntry& entry : file->entries()) bytes += std::ssize(entry.data);
    if (file->entries().size() > 1) largest = std::max(largest, bytes);
    all += bytes;
  }
  const double share = static_cast<double>(largest) / static_cast<double>(all);
  return static_cast<int64_t>(std::ceil(static_cast<double>(total) * share));
}

}  // namespace

FileForm form_of_files(const std::string& directory, const Weights& weights, const std::string& dtype) {
  const std::string own = host::base_directory(directory);
  FileForm form;
  if (!dtype.empty()) form.dtype = dtype;
  const auto files = weight_files(own);
  if (files.empty() || !std::filesystem::exists(files.begin()->first)) return form;
  const std::span<const ParamSpec> specs = own_specs(weights);
  if (dtype.empty() && are_all_bfloat16(*open_files(own, weights.whole_shape()), specs)) form.dtype = "BF16";
  int64_t total = 0;
  for (const ParamSpec& spec : specs) total += bytes_in(spec, form.dtype);
  form.shard_bytes = shard_bytes_like(own, total);
  return form;
}

shape::ModelShape huggingface_shape(const std::string& directory, const std::string& head,
                                    const WeightsOptions& options) {
  shape::ModelShape shape = shape::read_model_shape(host::base_directory(directory));
  if (!head.empty()) shape.head = shape::parse_head(head);
  if (options.latent_cache) shape::keep_latents(shape, options.tag + " latent_cache");
  return shape;
}

void check_huggingface(const std::string& directory, const std::string& head, const WeightsOptions& options) {
  OpenFiles(directory, head, options);
}

std::shared_ptr<Weights> load_huggingface(const std::string& directory, const std::string& head,
                                          const WeightsOptions& options, tensor::Exec exec) {
  OpenFiles from(directory, head, options);
  if (options.mapped) {
    check_tables(from, exec);
    auto values = std::make_shared<MappedValues>(from.directory, std::move(from.files), from.entries, from.specs,
                                                 std::move(from.adapters));
    auto mapped = std::make_shared<Weights>(from.shape, options, exec, std::move(values));
    mapped->commit();
    return mapped;
  }
  auto weights = std::make_shared<Weights>(from.shape, options, exec);
  for (size_t i = 0; i < from.entries.size(); ++i) {
    if (from.entries[i] == nullptr) continue;
    weights->fill(static_cast<int>(i), [&](std::span<float> whole) {
      read_param(from.specs[i], *from.entries[i], from.directory, whole);
      check_finite(*from.entries[i], from.directory, whole);
      if (from.adapters != nullptr && !options.lora.on()) from.adapters->sum_of(from.specs[i]).add(0, whole);
    });
  }
  if (from.adapters != nullptr && options.lora.on()) from.adapters->fill(*weights);
  weights->commit();
  return weights;
}

void save_huggingface(const Weights& weights, const std::string& directory, const FileForm& form) {
  const std::vector<FileTensor> tensors = file_tensors(own_specs(weights));
  if (!weights.options().ranks.writes()) {
    for (const FileTensor& tensor : tensors)
      for (const size_t param : tensor.params) whole_values(weights, static_cast<int>(param));
    return;
  }
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) throw base::RunError(expectation(directory, "a directory to write to", failed.message()));
  const auto ends = shard_ends(tensors, form);
  const std::string index = directory + "/model.safetensors.index.json", whole = directory + "/model.safetensors";
  if (ends.size() > 1) {
    save_shards(weights, directory, tensors, ends, form.dtype);
    ::unlink(whole.c_str());
  } else {
    write_safetensors(whole, to_write(weights, tensors, form.dtype));
    ::unlink(index.c_str());
  }
  auto config = shape::to_config(weights.whole_shape());
  config["torch_dtype"] = form.dtype == "BF16" ? "bfloat16" : "float32";
  host::write_file_atomically(directory + "/config.json", config.dump(2) + "\n");
}

}  // namespace collimate::model

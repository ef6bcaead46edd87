#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/stateful.h"
#include "collimate/model/data_shares.h"
#include "collimate/model/lora.h"
#include "collimate/model/mapped_values.h"
#include "collimate/model/share.h"
#include "collimate/model/stage_ranks.h"
#include "collimate/shape/model_shape.h"
#include "collimate/shape/param_spec.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/away_file.h"
#include "collimate/tensor/exec.h"
#include "collimate/tensor/host_access.h"
#include "collimate/tensor/ops/linear.h"

namespace collimate::model {

using tensor::ComputeType;

class Weights;

// Which of a model's segments are those of a base: weights of the same directory and layout that nothing changes, and
// that several models of one worker share. What training changes is always a model's own.
enum class Based { kNo, kButHead, kWhole };  // kButHead: the base has another head

struct WeightsOptions {
  bool trained = false;  // a frozen model owns no gradient and no optimizer state: values and panels alone
  ComputeType compute = ComputeType::kFloat32;
  int reduction_chunks = 1;
  std::string tag = "model";  // owner in memory reports
  LoraOptions lora = {};      // with adapters the model's own parameters are frozen: no gradient, no optimizer state
  // Frozen, from a directory: the values stay in its files, mapped. In memory are panels, norms and biases alone.
  bool mapped = false;
  // No sequence will be longer; 0: any up to the model's positions. LongRoPE chooses its factors by it.
  int64_t longest_tokens = 0;
  bool latent_cache = false;                // huggingface_shape has the cache keep latents (shape::Latent)
  ModelRanks ranks = {};                    // of which one has these weights
  Based based = Based::kNo;                 // where no ranks share anything
  std::shared_ptr<Weights> base = nullptr;  // where based; a plan of memory needs none
};

// A router computes in fp32 whatever the rest does: its choices decide by the last bits.
inline ComputeType compute_of(const WeightsOptions& options, const shape::ParamSpec& spec) {
  return spec.part == shape::Part::kRouter ? ComputeType::kFloat32 : options.compute;
}

// The chunks of a layer's sums on one rank. Where it is cut by its inputs, the ranks' sums take the place of so many
// chunks: then their bits are those of one rank.
inline int chunks_of(const WeightsOptions& options, const shape::ParamSpec& spec) {
  const int chunks = options.reduction_chunks, ranks = options.ranks.tensor.place.ranks;
  if (spec.part == shape::Part::kAdapter && spec.sizes.back() < chunks) return 1;  // by the rank, which nothing cuts
  return spec.cut == 1 && chunks % ranks == 0 ? chunks / ranks : chunks;
}

// Whether a segment is the base's: training changes nothing of it.
bool is_of_base(const WeightsOptions& options, const std::vector<shape::ParamSpec>& specs, int segment);

// Memory reports call a segment's fp32 values so: the "master" of a trained one, a frozen one's compute copy.
inline const char* values_purpose(bool trained) { return trained ? "master" : "values"; }

// Purposes of items are "master" or "values", "gradient", "panels".
using tensor::MemoryItem;

// Row numbers, as the host and as the device reads them.
struct RowIds {
  std::span<const int32_t> host;
  const int32_t* device = nullptr;
  int64_t first = 0;  // row of number 0
};

// The weights of one model on one device: an ordered list of segments (embedding, each block, head), each flat and
// padded to 64 bytes. Training, scoring and generation use it in place: fp32 values (a trained model's master; forward
// reads embeddings, norms and biases there), packed panels per linear layer, a gradient only where trained. A frozen
// model keeps the fp32 values of its linear layers too, beside their panels: those are packed from them, at first use
// and again after a commit or an offload, and links, checksums and export read them; those of a mapped one stay in its
// files, from which panels are packed and embeddings looked up: what would move or change them is a GuardError. Of
// several ranks each has its pieces of the parameters of its stage (shape::local), and of experts its own; segments of
// other stages are empty, and nothing in them changes. Where ranks share the weights (options().ranks.shares) each
// keeps a part of every segment but adapters and small ones, and reads the others' while it holds a segment: values and
// panels of one that nobody holds are not there, which is a GuardError. Segments of a base are no memory of this model,
// and are read through it: the base must not change. Not thread-safe.
class Weights {
  struct Impl;

 public:
  // A segment stays whole on this rank as long as one of these is there.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept;
    Held& operator=(Held&& other) noexcept;
    ~Held();

   private:
    friend class Weights;
    Held(Impl* impl, int segment) : impl_(impl), segment_(segment) {}
    Impl* impl_ = nullptr;  // null: of a segment that no ranks share
    int segment_ = 0;
  };

  // `values`: those of a mapped model.
  Weights(shape::ModelShape shape, WeightsOptions options, tensor::Exec exec,
          std::shared_ptr<MappedValues> values = nullptr);
  ~Weights();

  const shape::ModelShape& shape() const;        // of what this rank computes
  const shape::ModelShape& whole_shape() const;  // of the model
  const WeightsOptions& options() const;
  const TensorRanks& tensor() const { return options().ranks.tensor; }
  const StageRanks& stages() const { return options().ranks.stages; }
  const DataShares& shares() const { return options().ranks.shares; }
  const ExpertRanks& experts() const { return options().ranks.experts; }
  // Passes over rows that each of the ranks makes which share weights or experts, whose passes meet: as many as the
  // rank with the most rows has, of which it makes those beyond its own without tokens. All ranks call it.
  int64_t passes_of_all(int64_t own) const { return shares().several() ? shares().most(own) : experts().most(own); }
  // Embedding, blocks, head; one of adapters where there are any; where ranks share experts, one of each block's.
  int segments() const;
  // Whether a segment holds experts that ranks share; and that of a block's segment, -1 where there is none.
  bool is_of_experts(int segment) const { return segment >= first_of_experts(); }
  int expert_segment(int segment) const;
  // The model's own, and behind them those of adapters; the same of the whole model.
  const std::vector<shape::ParamSpec>& params() const;
  const std::vector<shape::ParamSpec>& whole_params() const;
  size_t own_params() const;
  // A checkpoint holds and a weight link carries these: all, or with adapters those that training changes.
  std::vector<int> changing_segments() const;
  // Whether training changes anything that a pass reads ahead of the segment.
  bool trains_ahead_of(int segment) const;
  // A segment of the last stage has a copy of the embedding alone, which is the head too.
  bool is_second_copy(int segment) const { return stages().several() && stages().place.is_last() && segment == 0; }
  // Index of the parameter of that Hugging Face name, or -1.
  int index_of(const std::string& name) const;
  // Index of the first weight, or first bias, of that part which a segment's pass reads, or -1.
  int index_of(shape::Part part, int segment, bool bias = false) const;

  // Whether a parameter, or anything of a segment, is trained.
  bool trains(int index) const;
  bool trains_segment(int segment) const;

  // Whether each rank keeps a part of the segment.
  bool is_shared(int segment) const;
  // Whoever reads a segment's values or panels holds it meanwhile. Of a shared one the first holder gathers the parts
  // of all ranks, which do so together: they hold the same segments, and let them go, in the same order. The last one
  // gives its memory back.
  Held hold(int segment) const;
  // Holds what the pass of a segment reads: it and, where ranks share experts, its own.
  std::array<Held, 2> hold_for_pass(int segment) const;
  // Holds all segments for passes that have no backward: panels, and those values that no panels have.
  std::vector<Held> hold_for_inference() const;
  int64_t segment_floats(int segment) const;  // of all ranks, with padding
  const Share& kept(int segment) const;       // what this rank keeps of it
  std::span<float> kept_values(int segment);  // [kept.count()], on the device
  // The values [begin, begin + values.size()) that this rank keeps of a parameter, on the device.
  struct KeptValues {
    int64_t begin = 0;
    std::span<float> values;
  };
  KeptValues kept_of(int index);

  // These lie on the device, for its operations. A gradient exists, and is zero, from its first use on.
  std::span<float> segment_values(int segment);    // [floats of the segment, with padding]
  std::span<float> segment_gradient(int segment);  // empty when frozen
  float* param(int index);                         // [spec.sizes…], inside the segment's values
  float* param_gradient(int index);                // null when frozen
  // Gives a segment's gradient away: its next use begins with zeros.
  tensor::Buffer take_gradient(int segment);
  // out [rows, width] on the device (+)= rows `ids` of a parameter. InputError for an id that it does not have.
  void look_up(int index, const RowIds& ids, float* out, bool accumulate = false) const;

  // The host sees them by these.
  tensor::HostEdit master(int segment);
  tensor::HostEdit gradient(int segment);
  tensor::HostEdit edit(int index);  // [spec.count()] of the master, as the next
  // Has `make` fill the whole parameter; kept is what this rank has of it, and without any it is not called.
  void fill(int index, const std::function<void(std::span<float> whole)>& make);
  // Collects a parameter of the whole model, of which `make` gives what this rank has: the rank that writes files gets
  // [whole's sizes], others nothing. All ranks call it.
  std::vector<float> gather(int index, const std::function<std::vector<float>()>& make) const;
  tensor::HostRead values(int index) const;
  tensor::HostRead gradient_of(int index);  // of a parameter; empty when frozen
  // Rows of a parameter from `first` on, from memory or the mapped files: out [rows, width].
  void read(int index, int64_t first, std::span<float> out) const;

  // Panels of a linear parameter, packed for the current version; packs when `commit` has made them stale. A panel of
  // another version than the weights' is never returned: GuardError. Nor is one whose values changed without a commit,
  // as far as a sample shows: eight values of each parameter that is packed in it.
  const tensor::LinearPanels& panels(int index);
  // Packs all that are not: what the first forward would do.
  void pack_all();

  uint64_t version() const;
  // This is to be called after every change of the master values: version + 1, panels become stale but those of
  // parameters that adapters leave as they are.
  void commit();
  // This is for values of a known version: a checkpoint's, or a weight link's source's.
  void commit(uint64_t version);
  // Panels are of this type from now on, those there are go. Of a frozen model.
  void set_compute(ComputeType type);

  void zero_gradients();
  // The values leave the device for the file, and come back with the same bits; panels are made again. Reading while
  // away is a GuardError. A base leaves with the last of the weights over it and comes back with the first one.
  // Gradients stay where they are.
  void offload(tensor::AwayFile& file);
  void restore(tensor::AwayFile& file);
  bool resident() const;
  // Gives their memory back: the next ones begin with zeros.
  void drop_gradients();

  // Normal(0, std) for matrices and embeddings, zeros for biases, ones for norms: by Philox on (seed, name, index).
  // Adapters stay as they are.
  void initialize(uint64_t seed, float std);
  // Σ hash(global index)·bits mod 2^64 over the master values: the same under any layout. All ranks call it.
  uint64_t checksum() const;
  std::vector<MemoryItem> memory() const;

  // Saves the changing segments. Of ranks with the same weights each one saves its shares [segments]; none: all of them
  // alone. All ranks load all.
  void save(base::StateWriter& out, std::span<const Share> shares = {}) const;
  void load(base::StateReader& in);

 private:
  int first_of_experts() const;  // segments() where there is none
  std::vector<float> counted_numbers(int index) const;

  std::unique_ptr<Impl> impl_;
};

// The shape that weights of a directory, of a model or of adapters, have: what the config.json says, with the head that
// is asked for ("": its own) and the cache. InputError for another head, and for latents of a model that has none.
shape::ModelShape huggingface_shape(const std::string& directory, const std::string& head,
                                    const WeightsOptions& options);
// Reads a Hugging Face directory (config.json, model.safetensors or sharded with an index), or one of PEFT's adapters:
// merged into the model that they belong to or, with options.lora, beside it to be trained on. Missing or surplus
// tensors are InputErrors that name them; a missing score or value head is initialised with zeros when `head` asks for
// one and the model is trained.
std::shared_ptr<Weights> load_huggingface(const std::string& directory, const std::string& head,
                                          const WeightsOptions& options, tensor::Exec exec);
// How a model's files are written.
struct FileForm {
  std::string dtype = "F32";        // as of TensorToWrite
  int64_t shard_bytes = INT64_MAX;  // of the tensors in a file, unless one alone has more
};
// The form of a directory's weight files, or of those that its adapters belong to, for weights that began as these: in
// as many files, and of the dtype "BF16" where all parameters there are, else "F32", or of the given one. One file
// where there are none.
FileForm form_of_files(const std::string& directory, const Weights& weights, const std::string& dtype = "");
// Writes config.json and model.safetensors, or its shards, atomically per file; with adapters merged. All ranks call
// it: the first one writes, parameter by parameter, what the others send.
void save_huggingface(const Weights& weights, const std::string& directory, const FileForm& form = {});

}  // namespace collimate::model

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

// Says which of a model's segments are those of a base: weights of the same directory and layout that nothing changes
// and that several models of one worker share. Segments that training changes are always a model's own.
enum class Based { kNo, kButHead, kWhole };  // kButHead: the base has another head

struct WeightsOptions {
  bool trained = false;  // a frozen model owns no gradient and no optimizer state: values and panels alone
  ComputeType compute = ComputeType::kFloat32;
  int reduction_chunks = 1;
  std::string tag = "model";  // owner in memory reports
  LoraOptions lora = {};      // with adapters the model's own parameters are frozen: no gradient, no optimizer state
  // A frozen model's values stay in the mapped files of its directory; only panels, norms and biases are in memory.
  bool mapped = false;
  // No sequence will be longer; 0: any up to the model's positions. LongRoPE and dynamic ropes depend on it.
  int64_t longest_tokens = 0;
  bool latent_cache = false;                // huggingface_shape has the cache keep latents (shape::Latent)
  ModelRanks ranks = {};                    // the ranks that share the model, of which one has these weights
  Based based = Based::kNo;                 // kNo where ranks share weights or experts
  std::shared_ptr<Weights> base = nullptr;  // needed unless `based` is kNo; a plan of memory needs none
};

// Returns the type in which a parameter computes: for a router always fp32, as its choices depend on the last bits.
inline ComputeType compute_of(const WeightsOptions& options, const shape::ParamSpec& spec) {
  return spec.part == shape::Part::kRouter ? ComputeType::kFloat32 : options.compute;
}

// Returns into how many chunks one rank divides the sums of a layer. In a layer that is cut by its inputs each rank has
// its part of the chunks, so that the sum over the ranks has the bits of one rank.
inline int chunks_of(const WeightsOptions& options, const shape::ParamSpec& spec) {
  const int chunks = options.reduction_chunks, ranks = options.ranks.tensor.place.ranks;
  if (spec.part == shape::Part::kAdapter && spec.sizes.back() < chunks) return 1;  // the LoRA rank is never cut
  return spec.cut == 1 && chunks % ranks == 0 ? chunks / ranks : chunks;
}

// Returns whether a segment is the base's, as training changes nothing of it.
bool is_of_base(const WeightsOptions& options, const std::vector<shape::ParamSpec>& specs, int segment);

// Returns what memory reports call a segment's fp32 values: "master" if it is trained, "values" if it is frozen.
inline const char* values_purpose(bool trained) { return trained ? "master" : "values"; }

// Purposes of items are "master" or "values", "gradient", "gathered", "panels".
using tensor::MemoryItem;

// Holds row numbers as the host and as the device reads them.
struct RowIds {
  std::span<const int32_t> host;
  const int32_t* device = nullptr;
  int64_t first = 0;  // row that number 0 stands for
};

// Holds two numbers for each row of a linear layer of which some parts have DoRA's adapters, on the device.
struct RowFactors {
  const float* factors = nullptr;  // [out] m / ‖W + scale B A‖; 1 where a part has no adapter, and for a row of zeros
  const float* inverses = nullptr;  // [out] 1 / ‖W + scale B A‖; 0 for a row of zeros
};

// To take lengths of rows, W + scale B A is made of so many rows at once.
constexpr int64_t kFactorRows = 256;

// Holds the weights of one model on one device as an ordered list of segments (embedding, each block, head), each flat
// and padded to 64 bytes. Training, scoring and generation use them in place: fp32 values (a trained model's master;
// forward reads embeddings, norms and biases there), packed panels per linear layer, and a gradient only where trained.
// A frozen model too keeps the fp32 values of its linear layers beside their panels: panels are packed from them, at
// first use and again after a commit or an offload, and links, checksums and export read them. The values of a mapped
// model stay in its files, from which panels are packed and embeddings looked up; functions that would move or change
// them throw GuardError. Of several ranks each has its pieces of the parameters of its stage (shape::local) and its own
// experts; segments of other stages are empty, and nothing in them changes. Where ranks share the weights
// (options().ranks.shares), each keeps a part of every segment except adapters and small ones, and has the other parts
// only while it holds the segment; to read values or panels of a segment that nobody holds throws GuardError. Segments
// of a base take no memory of this model and are read from the base, which must not change. Not thread-safe.
class Weights {
  struct Impl;

 public:
  // Keeps a segment whole on this rank as long as it lives.
  class Held {
   public:
    Held() = default;
    Held(Held&& other) noexcept;
    Held& operator=(Held&& other) noexcept;
    ~Held();

   private:
    friend class Weights;
    Held(Impl* impl, int segment) : impl_(impl), segment_(segment) {}
    Impl* impl_ = nullptr;  // null: no ranks share the segment
    int segment_ = 0;
  };

  // `values` are those of a mapped model, null for any other.
  Weights(shape::ModelShape shape, WeightsOptions options, tensor::Exec exec,
          std::shared_ptr<MappedValues> values = nullptr);
  ~Weights();

  const shape::ModelShape& shape() const;        // of what this rank computes
  const shape::ModelShape& whole_shape() const;  // of the whole model
  const WeightsOptions& options() const;
  const TensorRanks& tensor() const { return options().ranks.tensor; }
  const StageRanks& stages() const { return options().ranks.stages; }
  const DataShares& shares() const { return options().ranks.shares; }
  const ExpertRanks& experts() const { return options().ranks.experts; }
  // Returns how many passes over rows each rank makes, where ranks share weights or experts and their passes meet: the
  // largest of all ranks' `own` numbers. A rank makes the passes beyond its own without tokens. All ranks call it.
  int64_t passes_of_all(int64_t own) const { return shares().several() ? shares().most(own) : experts().most(own); }
  // Counts embedding, blocks and head, one more for adapters, and one more for each block whose experts ranks share.
  int segments() const;
  // These return whether a segment holds experts that ranks share, and the segment that holds the experts of a block,
  // given the block's segment; -1 where there is none.
  bool is_of_experts(int segment) const { return segment >= first_of_experts(); }
  int expert_segment(int segment) const;
  // These return the model's own parameters and behind them those of adapters, of this rank and of the whole model.
  const std::vector<shape::ParamSpec>& params() const;
  const std::vector<shape::ParamSpec>& whole_params() const;
  size_t own_params() const;  // number of parameters without those of adapters
  // Returns the segments that checkpoints and weight links have: all, or with adapters those that training changes.
  std::vector<int> changing_segments() const;
  // Returns whether training changes anything that a pass reads ahead of the segment.
  bool trains_ahead_of(int segment) const;
  // Returns whether a segment of the last stage has nothing but a second copy of an embedding that is also the head.
  bool is_second_copy(int segment) const { return stages().several() && stages().place.is_last() && segment == 0; }
  // Returns the index of the parameter of that Hugging Face name, or -1.
  int index_of(const std::string& name) const;
  // Returns the index of the first weight, or first bias, of that part which a segment's pass reads, or -1.
  int index_of(shape::Part part, int segment, bool bias = false) const;

  // These return whether a parameter, or anything of a segment, is trained.
  bool trains(int index) const;
  bool trains_segment(int segment) const;

  // Returns whether each rank keeps only a part of the segment.
  bool is_shared(int segment) const;
  // Whoever reads a segment's values or panels holds it meanwhile. The first holder of a shared segment gathers the
  // parts of all ranks, which do so together: they hold the same segments, and let them go, in the same order. The last
  // holder gives the memory back.
  Held hold(int segment) const;
  // Holds what the pass of a segment reads: the segment and, where ranks share experts, that of its experts.
  std::array<Held, 2> hold_for_pass(int segment) const;
  // Holds all segments for passes without a backward: their panels, and only those values that are in no panel.
  std::vector<Held> hold_for_inference() const;
  int64_t segment_floats(int segment) const;  // of all ranks, with padding
  const Share& kept(int segment) const;       // what this rank keeps of it
  std::span<float> kept_values(int segment);  // [kept.count()], on the device
  // Holds the values [begin, begin + values.size()) of a parameter that this rank keeps, on the device.
  struct KeptValues {
    int64_t begin = 0;
    std::span<float> values;
  };
  KeptValues kept_of(int index);

  // These return memory on the device, for its operations. A gradient is made, of zeros, at its first use.
  std::span<float> segment_values(int segment);    // [floats of the segment, with padding]
  std::span<float> segment_gradient(int segment);  // empty when frozen
  float* param(int index);                         // [spec.sizes…], inside the segment's values
  float* param_gradient(int index);                // null when frozen
  // Gives a segment's gradient away; its next use begins with zeros.
  tensor::Buffer take_gradient(int segment);
  // Writes rows `ids` of a parameter to out [rows, width] on the device, or adds them with `accumulate`. Throws
  // InputError for an id that the parameter does not have.
  void look_up(int index, const RowIds& ids, float* out, bool accumulate = false) const;

  // The host reads and changes values and gradients by these.
  tensor::HostEdit master(int segment);
  tensor::HostEdit gradient(int segment);
  // Has `make` fill in the whole parameter and keeps what this rank has of it; if that is nothing, does not call it.
  void fill(int index, const std::function<void(std::span<float> whole)>& make);
  // Collects a parameter of the whole model; `make` gives what this rank has of it. The rank that writes files gets
  // [whole's sizes], all others an empty list. All ranks call it.
  std::vector<float> gather(int index, const std::function<std::vector<float>()>& make) const;
  tensor::HostRead values(int index) const;
  tensor::HostRead gradient_of(int index);  // of a parameter; empty when frozen
  // Reads rows of a parameter from `first` on, from memory or the mapped files, into out [rows, width].
  void read(int index, int64_t first, std::span<float> out) const;

  // Returns the panels of a linear parameter, packed for the current version; packs them if `commit` has made them
  // stale. Throws GuardError instead of returning a panel of another version than the weights', or one whose values
  // changed without a commit, as far as a sample shows: eight values of each parameter that is packed in it.
  const tensor::LinearPanels& panels(int index);
  // These are of layers with DoRA's adapters. row_lengths() returns the length of each row of W + scale B A of the
  // weight with that index; row_factors() returns, on the device, what rows of the linear layer that begins there are
  // multiplied by, which is made again when `commit` has made it stale.
  std::vector<float> row_lengths(int index) const;
  RowFactors row_factors(int first);
  // Packs all panels that are not packed yet, as the first forward would.
  void pack_all();

  uint64_t version() const;
  // Must be called after every change of the master values. It adds 1 to the version and makes panels stale, except
  // those of parameters that adapters leave as they are.
  void commit();
  // Does the same for values of a known version: a checkpoint's, or that of a weight link's source.
  void commit(uint64_t version);
  // Has panels be of this type from now on and drops those that exist. The model must be frozen and have no base.
  void set_compute(ComputeType type);

  void zero_gradients();
  // offload() moves the values from the device to the file, restore() brings them back with the same bits; panels are
  // packed again. To read values meanwhile throws GuardError. A base leaves with the last of the weights over it and
  // comes back with the first. Gradients stay where they are.
  void offload(tensor::AwayFile& file);
  void restore(tensor::AwayFile& file);
  bool resident() const;
  // Gives back the memory of gradients; the next ones begin with zeros.
  void drop_gradients();

  // Initialises matrices and embeddings by Normal(0, std), biases and a score head with zeros, norms with ones, by
  // Philox on (seed, name, index). Adapters stay as they are. Commits.
  void initialize(uint64_t seed, float std);
  // Returns Σ hash(global index)·bits mod 2^64 over the master values, the same under any layout. All ranks call it.
  uint64_t checksum() const;
  std::vector<MemoryItem> memory() const;

  // Saves the changing segments. Of ranks with the same weights each saves its own `shares` [segments]; without any, a
  // rank saves all that it keeps. All ranks load all.
  void save(base::StateWriter& out, std::span<const Share> shares = {}) const;
  void load(base::StateReader& in);

 private:
  int first_of_experts() const;  // first segment of shared experts; segments() where there is none
  std::vector<float> counted_numbers(int index) const;

  std::unique_ptr<Impl> impl_;
};

// Returns the shape of the weights of a directory, of a model or of adapters: that of the config.json, with the head
// that is asked for ("": its own) and the options' kind of cache. Throws InputError for an unknown head, and when
// latents are to be cached of a model that has none.
shape::ModelShape huggingface_shape(const std::string& directory, const std::string& head,
                                    const WeightsOptions& options);
// Reads a Hugging Face directory (config.json, model.safetensors or shards with an index), or a directory of PEFT
// adapters. These are merged into the model that they belong to or, with options.lora, put beside it to be trained on.
// Throws InputError naming missing or surplus tensors. A missing score or value head is initialised with zeros when
// `head` asks for one and the model is trained.
std::shared_ptr<Weights> load_huggingface(const std::string& directory, const std::string& head,
                                          const WeightsOptions& options, tensor::Exec exec);
// Says how a model's files are written.
struct FileForm {
  std::string dtype = "F32";        // TensorToWrite::dtype
  int64_t shard_bytes = INT64_MAX;  // of the tensors in a file, unless one alone has more
};
// Returns the form of a directory's weight files, or for adapters of their model's files, for weights that began as
// these: in about as many files, and of the given dtype or, if it is empty, "BF16" where bf16 holds all values in the
// files, else "F32". It is one file where the directory has no weight files.
FileForm form_of_files(const std::string& directory, const Weights& weights, const std::string& dtype = "");
// Writes config.json and model.safetensors, or its shards, each file atomically; adapters are merged. All ranks call
// it: the first one writes, parameter by parameter, what the others send.
void save_huggingface(const Weights& weights, const std::string& directory, const FileForm& form = {});

}  // namespace collimate::model

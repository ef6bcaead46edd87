#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "collimate/model/weights.h"

namespace collimate::model {

// Holds the members of Weights, for the files that define its functions.
struct Weights::Impl {
  struct Segment {
    int64_t floats = 0;
    bool changes = false;     // training changes it
    bool is_of_base = false;  // master and panels are the base's
    Share kept;               // the floats of it that this rank always has
    std::shared_ptr<tensor::Buffer> master = std::make_shared<tensor::Buffer>();  // [kept]
    tensor::Buffer gradient;                                                      // [floats]
    // A shared segment that is held has its values here: all [floats] or, with small_alone, those in no panel [small].
    tensor::Buffer gathered;
    tensor::AwayFile::Slot away;  // of the master
    int holders = 0;
    bool small_alone = false;
    int64_t small = 0;
    bool is_shared() const { return kept.count() < floats; }
  };
  struct Packed {
    tensor::LinearPanels panels;
    tensor::Buffer memory;
    bool ready = false;
    uint64_t fingerprint = 0;  // of the values they were packed from
    tensor::Buffer factors;    // [2, rows] RowFactors of a layer with DoRA's adapters
    uint64_t factors_version = 0;
  };

  shape::ModelShape shape, whole_shape;
  WeightsOptions options;
  tensor::Exec exec;
  std::vector<shape::ParamSpec> specs, whole_specs;
  std::vector<bool> changes;      // by parameter: training changes it
  std::vector<int64_t> small_at;  // by parameter: offset in its segment's small values; -1 where panels have it
  size_t own = 0;                 // number of parameters without those of adapters
  int first_of_experts = 0;       // first segment of shared experts; the number of segments where there is none
  std::unordered_map<std::string, int> index;
  std::vector<Segment> segments;
  std::vector<Packed> packed;  // one per parameter, empty where it is no linear layer
  std::shared_ptr<MappedValues> mapped;
  uint64_t version = 1;
  bool resident = true;
  int over = 0;  // of a base: number of the weights over it that are on the device

  const shape::ParamSpec& spec(int index) const { return specs.at(static_cast<size_t>(index)); }
  tensor::MemoryScope scope(const char* purpose) const { return tensor::MemoryScope(options.tag + "/" + purpose); }
  bool trains(const Segment& s) const { return options.trained && s.changes; }
  const char* values_purpose(const Segment& s) const { return model::values_purpose(trains(s)); }
  float* gradient(Segment& s) {
    if (s.gradient.data() == nullptr) s.gradient = zeros(s.floats, "gradient");
    return s.gradient.floats();
  }

  Segment& segment(int number);
  const DataShares& shares_of(int segment) const {
    return segment < first_of_experts ? options.ranks.shares : options.ranks.expert_shares;
  }
  void check_in_memory(const std::string& what) const;
  void check_resident() const;
  // Lays out everything but memory, by shape and options.
  void lay_out();
  // Returns a parameter's values [spec.count()]; throws GuardError when they are not here.
  float* values_at(int index) const;
  float* whole_segment(int number);
  // Holds the range [begin, end) of a parameter's floats that this rank keeps; the first one is at `values`.
  struct KeptRange {
    int64_t begin = 0, end = 0;
    float* values = nullptr;
    int64_t count() const { return end - begin; }
  };
  KeptRange kept_of(int index) const;
  // Returns a parameter's numbers [spec.count()], with 0 for those that this rank does not keep.
  std::vector<float> kept_numbers(int index) const;

  void pack(int first, Packed& target);
  // Returns whether a parameter begins a linear layer that a pass of this rank reads by panels.
  bool has_panels(size_t index) const;
  uint64_t fingerprint(int first) const;
  // Returns the index of an adapter's parameter of a weight; -1 where there is none.
  int adapter_of(int weight, std::string_view end) const;
  // Returns whether a parameter begins a linear layer that has RowFactors.
  bool has_factors(size_t first) const;
  std::vector<float> row_lengths(int weight) const;
  void make_factors(int first, Packed& target);
  void drop_panels(int segment);  // -1: of all segments

  void gather(int segment);
  void shrink(int segment);
  void let_go(int segment);

  void take_base();  // takes over the segments that are the base's
  Impl* below() const { return options.base == nullptr ? nullptr : options.base->impl_.get(); }
  tensor::Buffer zeros(int64_t floats, const char* purpose) const;
};

}  // namespace collimate::model

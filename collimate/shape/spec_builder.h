#pragma once

#include <string>
#include <utility>
#include <vector>

#include "collimate/shape/param_spec.h"

namespace collimate::shape {

constexpr int64_t kAlignFloats = 16;

inline int64_t padded(int64_t count) { return (count + kAlignFloats - 1) / kAlignFloats * kAlignFloats; }

// A Builder collects the parameters of one model and gives each its offset.
class Builder {
 public:
  void begin_segment(int segment) {
    segment_ = segment;
    next_ = 0;
  }

  // Parameters that are added from now on belong to that expert of their block; with -1 to none.
  void begin_expert(int expert) { expert_ = expert; }

  ParamSpec& add(const std::string& name, Part part, ParamKind kind, std::vector<int64_t> sizes) {
    ParamSpec spec;
    spec.name = name;
    spec.part = part;
    spec.kind = kind;
    spec.dims.resize(sizes.size());
    spec.sizes = std::move(sizes);
    spec.segment = spec.runs_in = segment_;
    spec.expert = expert_;
    spec.decay = kind == ParamKind::kEmbedding || kind == ParamKind::kLinear;
    spec.offset = next_ = padded(next_);
    next_ += spec.count();
    specs_.push_back(std::move(spec));
    return specs_.back();
  }

  // Has the last `members` parameters run as one linear layer: their offsets close up without gaps.
  void fuse(int members) {
    const size_t first = specs_.size() - static_cast<size_t>(members);
    next_ = specs_[first].offset;
    for (size_t i = first; i < specs_.size(); ++i) {
      specs_[i].offset = next_;
      specs_[i].fused = i == first ? members : 0;
      next_ += specs_[i].count();
    }
  }

  std::vector<ParamSpec> take() { return std::move(specs_); }

 private:
  std::vector<ParamSpec> specs_;
  int segment_ = 0;
  int expert_ = -1;
  int64_t next_ = 0;
};

}  // namespace collimate::shape

#include "collimate/flow/weight_link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/host_access.h"
#include "tests/support/base/error_of.h"
#include "tests/support/checked_device.h"

namespace collimate::flow {
namespace {

using shape::ParamSpec;
using shape::WeightRank;

// A matrix whose rows ranks have pieces of, and a norm that all have, in a model of one block.
struct Two {
  Two() {
    shape.blocks.resize(1);
    for (const auto& [name, kind] : {std::pair("layers.0.up", shape::ParamKind::kLinear),
                                     {"layers.0.down", shape::ParamKind::kLinear},
                                     {"layers.0.norm", shape::ParamKind::kNorm}}) {
      ParamSpec& spec = params.emplace_back();
      spec.name = name;
      spec.kind = kind;
      spec.part = kind == shape::ParamKind::kNorm ? shape::Part::kMlpNorm : shape::Part::kUp;
      spec.segment = spec.runs_in = 1;
    }
    params[0].sizes = {4, 3};
    params[0].dims = {{"tp"}, {}};
    params[1].sizes = {3, 4};
    params[1].dims = {{}, {"tp"}};
    params[2].sizes = {3};
    params[2].dims = {{}};
    params[1].offset = 12;
    params[2].offset = 24;
  }
  shape::ModelShape shape;
  std::vector<ParamSpec> params;
};

// A rank has its part of them, on the checked device: from 1 on where it is filled, else 0. The host sees it by
// `values`.
class RankPort : public WeightsPort {
 public:
  RankPort(const WeightRank& rank, bool filled, uint64_t version = 0)
      : version_(version), mine_(shape::local(two_.params, two_.shape, rank.place)) {
    const std::vector<int64_t> floats = shape::segment_floats(mine_);
    buffer_ = tensor::Buffer(std::accumulate(floats.begin(), floats.end(), int64_t{0}) * 4, *exec().device);
    for (size_t i = 0; i < mine_.size(); ++i) {
      const tensor::HostEdit view(exec(), span(i));
      std::vector<float> whole(static_cast<size_t>(two_.params[i].count()));
      if (filled) std::iota(whole.begin(), whole.end(), static_cast<float>(100 * i + 1));
      if (mine_[i].cut < 0)
        std::ranges::copy(whole, view.begin());
      else
        shape::take_pieces(mine_[i], whole, view.span());
    }
  }
  const void* identity() const override { return buffer_.data(); }
  uint64_t version() const override { return version_; }
  uint64_t checksum() const override { return 0; }
  tensor::Exec exec() const override { return {nullptr, &test::checked_device()}; }
  const shape::ModelShape& whole_shape() const override { return two_.shape; }
  const std::vector<ParamSpec>& whole_params() const override { return two_.params; }
  bool carries(int param) const override { return param != frozen_; }
  Kept kept(int param) override { return {&base::at(mine_, param), 0, span(static_cast<size_t>(param))}; }
  void updated(uint64_t version) override { version_ = version; }

  std::vector<float> values() {
    std::vector<float> all;
    for (size_t i = 0; i < mine_.size(); ++i) {
      const tensor::HostRead view(exec(), span(i));
      all.insert(all.end(), view.begin(), view.end());
    }
    return all;
  }
  void set(int param, float value) {
    const tensor::HostEdit view(exec(), span(static_cast<size_t>(param)));
    view[0] = value;
  }

  Two two_;
  uint64_t version_;
  int frozen_ = -1;

 private:
  std::span<float> span(size_t param) const {
    return {buffer_.floats() + mine_[param].offset, static_cast<size_t>(mine_[param].count())};
  }

  std::vector<ParamSpec> mine_;
  tensor::Buffer buffer_;
};

std::vector<WeightRank> tensor_ranks(int ranks, int first_worker) {
  std::vector<WeightRank> all;
  for (int r = 0; r < ranks; ++r) all.push_back({.worker = first_worker + r, .place = {.tensor = {r, ranks}}});
  return all;
}

// A model of `from` tensor ranks, all filled, and one of `to`, on other workers.
struct Ends {
  Ends(int from, int to) : source_ranks(tensor_ranks(from, 0)), destination_ranks(tensor_ranks(to, from)) {
    for (const WeightRank& rank : source_ranks) sources.push_back(std::make_unique<RankPort>(rank, true, 7));
    for (const WeightRank& rank : destination_ranks) destinations.push_back(std::make_unique<RankPort>(rank, false));
    const shape::TransferPlan plan = shape::plan_transfer({two.shape, two.params, source_ranks, destination_ranks});
    for (const shape::Route& route : plan.routes)
      for (const std::vector<shape::Slice>& slices : shape::buckets_of(route.slices, 5))
        buckets.emplace_back(route.destination - from, pack_bucket("a -> b", *base::at(sources, route.source), slices));
  }
  // Takes the buckets, in the opposite order, and ends the transfer.
  void carry() {
    std::vector<IncomingWeights> incoming(destinations.size());
    for (auto bucket = buckets.rbegin(); bucket != buckets.rend(); ++bucket)
      base::at(incoming, bucket->first).take("a -> b", bucket->second, *base::at(destinations, bucket->first));
    for (size_t d = 0; d < destinations.size(); ++d) incoming[d].finish("a -> b", *destinations[d]);
  }
  std::string guard() {
    return base::message_of<base::GuardError>([&] { carry(); });
  }

  Two two;
  std::vector<WeightRank> source_ranks, destination_ranks;
  std::vector<std::unique_ptr<RankPort>> sources, destinations;
  std::vector<std::pair<int, WeightBucket>> buckets;  // by index of the destination
};

TEST(WeightLink, AliasCopiesNothingAndCopyIsChecked) {
  RankPort source({}, true, 7), other({}, false);
  EXPECT_EQ(transfer_here("a -> a", source, source), 0);
  EXPECT_EQ(transfer_here("a -> b", source, other), 27 * 4);
  EXPECT_EQ(other.values(), source.values());
  EXPECT_EQ(other.version(), 7U);
  other.frozen_ = source.frozen_ = 1;
  EXPECT_EQ(transfer_here("a -> b", source, other), 15 * 4);
  other.set(1, 5);
  EXPECT_THAT(base::message_of<base::GuardError>([&] { transfer_here("a -> b", source, other); }),
              testing::StartsWith("[weights a -> b] expected layers.0.down with checksum"));
  RankPort half(tensor_ranks(2, 0).front(), false);
  EXPECT_EQ(base::message_of<base::GuardError>([&] { transfer_here("a -> c", source, half); }),
            "[weights a -> c] expected the same part of layers.0.up on both ends, got another");
}

TEST(WeightLink, BucketsCarryTheNumbersBetweenLayouts) {
  for (const auto& [from, to] : {std::pair(1, 1), {2, 1}, {1, 2}, {2, 4}, {4, 2}}) {
    Ends ends(from, to);
    for (const auto& [to_index, bucket] : ends.buckets) EXPECT_LE(bucket.values.size(), 5U);
    ends.carry();
    for (size_t d = 0; d < ends.destinations.size(); ++d) {
      RankPort expected(ends.destination_ranks[d], true);
      EXPECT_EQ(ends.destinations[d]->values(), expected.values()) << from << " to " << to;
      EXPECT_EQ(ends.destinations[d]->version(), 7U);
    }
  }
}

TEST(WeightLink, FrozenParametersAreComparedAndDoNotTravel) {
  RankPort whole({}, true, 7), other({}, true);
  whole.frozen_ = other.frozen_ = 0;
  const std::vector<shape::Slice> all = {{0, {0, 4, 0, 3}}, {1, {0, 3, 0, 4}}, {2, {0, 3, 0, 1}}};
  const WeightBucket bucket = pack_bucket("a -> b", whole, all);
  EXPECT_EQ(bucket.values.size(), 15U);
  const auto carry = [&] {
    IncomingWeights incoming;
    incoming.take("a -> b", bucket, other);
    incoming.finish("a -> b", other);
  };
  carry();
  other.set(0, 5);
  EXPECT_THAT(base::message_of<base::GuardError>(carry), testing::HasSubstr("expected layers.0.up with checksum"));
}

TEST(WeightLink, AWrongBucketIsNamedByItsParameter) {
  Ends flipped(2, 1);
  flipped.buckets.back().second.values.back() += 1;
  EXPECT_THAT(flipped.guard(), testing::StartsWith("[weights a -> b] expected layers.0.down with checksum"));
  Ends skipped(2, 1);
  std::erase_if(skipped.buckets, [](const auto& bucket) { return bucket.second.parts.front().slice.param == 2; });
  EXPECT_EQ(skipped.guard(), "[weights a -> b] expected 3 values of layers.0.norm, got 1");
  Ends twice(2, 1);
  twice.buckets.push_back(twice.buckets.front());
  EXPECT_EQ(twice.guard(), "[weights a -> b] expected 12 values of layers.0.up, got 15");
  Ends old(2, 1);
  old.buckets.front().second.version = 6;
  EXPECT_EQ(old.guard(), "[weights a -> b] expected version 7 of layers.0.up, got version 6");
  Ends stale(2, 1);
  stale.buckets.front().second.values.assign(3, 0.5F);
  EXPECT_THAT(stale.guard(), testing::StartsWith("[weights a -> b] expected layers.0.up with checksum"));
  Ends other(2, 1);
  other.destinations[0]->two_.params[1].name = "another";
  EXPECT_EQ(other.guard(),
            "[weights a -> b] expected the same parameters on both ends, got others; try the same model, head and "
            "adapters for both");
  Ends elsewhere(1, 2);
  elsewhere.buckets.front().first = 1;
  EXPECT_EQ(elsewhere.guard(),
            "[weights a -> b] expected rows 0 to 1 of layers.0.up on this worker, got a layout "
            "without them");
}

}  // namespace
}  // namespace collimate::flow

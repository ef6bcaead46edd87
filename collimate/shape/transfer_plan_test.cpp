#include "collimate/shape/transfer_plan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <random>
#include <unordered_set>

#include "collimate/base/at.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/outline.h"
#include "tests/support/small_family_configs.h"

namespace collimate::shape {
namespace {

struct Layout {
  int tp = 1, pp = 1, ep = 1, copies = 1;
  bool zero3 = false;
  std::vector<int64_t> layers = {};  // of each stage, as StageRank has them
  int runs = 1;
};

std::vector<WeightRank> ranks_of(const Layout& layout, int first_worker) {
  std::vector<WeightRank> ranks;
  const int copies = layout.copies * layout.ep;
  for (int copy = 0; copy < copies; ++copy)
    for (int stage = 0; stage < layout.pp; ++stage)
      for (int tensor = 0; tensor < layout.tp; ++tensor) {
        WeightRank& rank = ranks.emplace_back();
        rank.worker = first_worker++;
        rank.place = {
            {tensor, layout.tp}, {stage, layout.pp, layout.layers, layout.runs}, {copy % layout.ep, layout.ep}};
        if (!layout.zero3) continue;
        rank.all = {copy, copies};
        if (layout.ep > 1) rank.experts = {copy / layout.ep, layout.copies};
      }
  return ranks;
}

// Every tp of 1, 2, 3, 4 and 6 divides its heads and widths.
ModelShape shape_of(const std::string& family, int64_t kv_heads) {
  ModelShape shape = parse_model_shape(nlohmann::json::parse(test::small_families().at(family)), family);
  shape.vocabulary = 300;  // of which 2 and 4 ranks have pieces, 3 and 6 have not
  for (Block& block : shape.blocks) {
    const bool grouped = block.attention.kv_heads < block.attention.heads && block.attention.latent.kv_rank == 0;
    block.attention.heads = 12;
    block.attention.kv_heads = grouped ? kv_heads : 12;
    block.attention.head_dim = 8;
    block.mlp.intermediate = 96;
    Experts& experts = block.mlp.experts;
    if (experts.count > 0) experts.intermediate = 48;
    if (experts.shared > 0) experts.shared = 24;
  }
  for (const size_t i : {0, 1}) shape.blocks.push_back(shape.blocks.at(i));
  return shape;
}

// A rank's part of every parameter: a parameter's value is its index, from 1 on; 0 is where it keeps nothing.
struct Memory {
  std::vector<ParamSpec> specs;
  std::vector<std::vector<float>> values;
};

Memory memory_of(const TransferRequest& request, const WeightRank& rank) {
  Memory memory{local(request.params, request.whole, rank.place), {}};
  const std::vector<int64_t> floats = segment_floats(memory.specs);
  for (size_t i = 0; i < memory.specs.size(); ++i) {
    const ParamSpec& mine = memory.specs[i];
    std::vector<float>& values = memory.values.emplace_back(static_cast<size_t>(mine.count()));
    if (mine.absent()) continue;
    std::vector<float> whole(static_cast<size_t>(request.params[i].count()));
    std::iota(whole.begin(), whole.end(), 1.0F);
    if (mine.cut < 0)
      values = whole;
    else
      take_pieces(mine, whole, values);
    const bool of_experts = mine.expert >= 0 && rank.place.experts.ranks > 1;
    const ShareRank& share = of_experts ? rank.experts : rank.all;
    const Share kept = kept_of(base::at(floats, mine.segment), share.rank, share.ranks);
    for (int64_t v = 0; v < mine.count(); ++v)
      if (mine.offset + v < kept.begin || mine.offset + v >= kept.end) base::at(values, v) = 0;
  }
  return memory;
}

std::map<int, Memory> memories_of(const TransferRequest& request, const std::vector<WeightRank>& ranks) {
  std::map<int, Memory> all;
  for (const WeightRank& rank : ranks) all[rank.worker] = memory_of(request, rank);
  return all;
}

std::vector<float> taken(const Memory& memory, const Slice& slice) {
  std::vector<float> values;
  for_each_run(base::at(memory.specs, slice.param), slice.box, [&](int64_t at, int64_t count) {
    const auto first = base::at(memory.values, slice.param).begin() + at;
    values.insert(values.end(), first, first + count);
  });
  return values;
}

// Carries plans out. Each value of each destination is written once, none that it does not keep, and all that its own
// device has come from there.
class Carried {
 public:
  Carried(const TransferRequest& request, const std::string& what)
      : what_(what),
        plan_(plan_transfer(request)),
        sources_(memories_of(request, request.sources)),
        missing_(memories_of(request, request.destinations)) {
    int64_t kept = 0, far = 0;
    for (const auto& [worker, memory] : missing_)
      for (const auto& values : memory.values) kept += std::ssize(values) - std::ranges::count(values, 0.0F);
    EXPECT_EQ(plan_.floats(), kept) << what;
    for (const Route& route : plan_.routes)
      for (const Slice& slice : route.slices) {
        write(route, slice);
        if (route.source == route.destination || testing::Test::HasFatalFailure()) continue;
        far += slice.box.count();
        expect_not_here(route, slice);
      }
    EXPECT_EQ(plan_.moved_floats(), far) << what;
  }

 private:
  void write(const Route& route, const Slice& slice) {
    const std::vector<float> values = taken(sources_.at(route.source), slice);
    ASSERT_EQ(std::ssize(values), slice.box.count());
    Memory& memory = missing_.at(route.destination);
    size_t next = 0;
    const ParamSpec& spec = base::at(memory.specs, slice.param);
    ASSERT_TRUE(has_box(spec, slice.box)) << what_ << " " << spec.name;
    for_each_run(spec, slice.box, [&](int64_t at, int64_t count) {
      for (int64_t i = at; i < at + count; ++i, ++next) {
        float& value = base::at(base::at(memory.values, slice.param), i);
        ASSERT_NE(value, 0) << what_ << " " << spec.name << " is written twice";
        ASSERT_EQ(value, values.at(next)) << what_ << " " << spec.name;
        value = 0;
      }
    });
  }

  // The destination's own device does not have what comes from another.
  void expect_not_here(const Route& route, const Slice& slice) {
    const auto here = sources_.find(route.destination);
    if (here == sources_.end()) return;
    const auto [found, fresh] = has_.try_emplace({route.destination, slice.param});
    if (fresh)
      for (const float value : base::at(here->second.values, slice.param)) found->second.insert(value);
    for (const float value : taken(sources_.at(route.source), slice))
      ASSERT_FALSE(found->second.contains(value)) << what_ << " " << base::at(here->second.specs, slice.param).name;
  }

  std::string what_;
  TransferPlan plan_;
  std::map<int, Memory> sources_, missing_;
  std::map<std::pair<int, int>, std::unordered_set<float>> has_;  // by worker and parameter
};

class Layouts {
 public:
  Layout next(const ModelShape& shape) {
    Layout layout;
    const int64_t kv_heads = shape.blocks.back().attention.kv_heads;
    do layout.tp = one_of({1, 2, 3, 4, 6});
    while (kv_heads % layout.tp != 0 && layout.tp % kv_heads != 0);
    layout.pp = one_of({1, 2, 3});
    if (experts_of(shape) != nullptr) layout.ep = one_of({1, 2, 3});
    layout.copies = one_of({1, 2});
    layout.zero3 = one_of({0, 1}) == 1;
    if (layout.pp == 1) return layout;
    if (2 * layout.pp <= shape.layers()) layout.runs = one_of({1, 2});
    if (one_of({0, 1}) == 0) return layout;
    const int stages = layout.pp * layout.runs;
    layout.layers.assign(static_cast<size_t>(stages), 1);
    for (int64_t rest = shape.layers() - stages; rest > 0; --rest)
      ++base::at(layout.layers, one_of({0, 1, 2, 3}) % stages);
    return layout;
  }
  int one_of(const std::vector<int>& values) { return values.at(random_() % values.size()); }

 private:
  std::mt19937 random_{7};
};

TEST(TransferPlan, EveryValueIsWrittenOnceBetweenAnyTwoLayouts) {
  Layouts random;
  for (const auto& [family, config] : test::small_families())
    for (int round = 0; round < 6; ++round) {
      const ModelShape shape = shape_of(family, random.one_of({1, 2, 12}));
      const std::vector<ParamSpec> params = param_specs(shape);
      const Layout from = random.next(shape), to = random.next(shape);
      const int first = random.one_of({0, 1, 2, 300});
      const std::string what = fmt::format(
          "{} tp {} pp {} ep {} copies {} zero3 {} to tp {} pp {} ep {} copies {} zero3 {} from {}", family, from.tp,
          from.pp, from.ep, from.copies, from.zero3, to.tp, to.pp, to.ep, to.copies, to.zero3, first);
      const Carried carried({shape, params, ranks_of(from, 0), ranks_of(to, first)}, what);
      if (testing::Test::HasFatalFailure()) return;
    }
}

// Where two layouts cut stages at other blocks, just the blocks between the cuts move.
TEST(TransferPlan, BlocksBetweenTheCutsOfStagesMove) {
  const ModelShape shape = shape_of("qwen2", 12);
  ASSERT_EQ(shape.layers(), 4);
  const std::vector<ParamSpec> params = param_specs(shape);
  const auto moved = [&](const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
    return plan_transfer({shape, params, ranks_of({.pp = 2, .layers = from}, 0), ranks_of({.pp = 2, .layers = to}, 0)})
        .moved_floats();
  };
  int64_t of_block_2 = 0;
  for (const ParamSpec& spec : params) of_block_2 += spec.runs_in == 3 ? spec.count() : 0;
  EXPECT_EQ(moved({1, 3}, {1, 3}), 0);
  EXPECT_EQ(moved({2, 2}, {3, 1}), of_block_2);
  EXPECT_EQ(moved({3, 1}, {2, 2}), of_block_2);
}

// Each of equal sources gives as much as the others, to destinations that have nothing themselves.
TEST(TransferPlan, EqualSourcesShareTheWork) {
  const ModelShape shape = shape_of("qwen2", 12);
  const std::vector<ParamSpec> params = param_specs(shape);
  const TransferPlan plan = plan_transfer({shape, params, ranks_of({.copies = 4}, 0), ranks_of({.tp = 2}, 10)});
  std::map<int, int64_t> given;
  int64_t most = 0;
  for (const Route& route : plan.routes) given[route.source] += route.floats();
  for (const ParamSpec& spec : params) most = std::max(most, spec.count());
  ASSERT_EQ(given.size(), 4U);
  for (const auto& [source, floats] : given) EXPECT_NEAR(floats, plan.floats() / 4, most);
}

TEST(TransferPlan, BucketsHaveEverySliceAndAreBounded) {
  const std::vector<Slice> slices = {{0, {2, 5, 0, 4}}, {1, {0, 1, 3, 30}}, {2, {0, 7, 0, 1}}};
  const std::vector<std::vector<Slice>> expected = {
      {{0, {2, 2, 0, 4}}}, {{0, {4, 2, 0, 4}}}, {{0, {6, 1, 0, 4}}}, {{1, {0, 1, 3, 30}}}, {{2, {0, 7, 0, 1}}}};
  EXPECT_EQ(buckets_of(slices, 10), expected);
}

// Sums of every parameter that the layout has once.
TEST(TransferPlan, ChecksumsOfPiecesAddUp) {
  const ModelShape shape = shape_of("mixtral", 2);
  const std::vector<ParamSpec> params = param_specs(shape);
  const Layout pieces{.tp = 2, .pp = 2, .ep = 3}, shares{.copies = 3, .zero3 = true};
  for (const Layout& layout : {pieces, shares}) {
    const TransferRequest request{shape, params, ranks_of({}, 0), ranks_of(layout, 1)};
    const Memory whole = memory_of(request, request.sources[0]);
    std::vector<uint64_t> sums(params.size());
    std::vector<int64_t> floats(params.size());
    for (const Route& route : plan_transfer(request).routes)
      for (const Slice& slice : route.slices) {
        const ParamSpec& spec = base::at(params, slice.param);
        const int64_t width = spec.count() / spec.sizes[0];
        base::at(sums, slice.param) += checksum_of(spec.name, width, slice.box, taken(whole, slice));
        base::at(floats, slice.param) += slice.box.count();
      }
    size_t compared = 0;
    for (size_t i = 0; i < params.size(); ++i) {
      if (floats[i] != params[i].count()) continue;
      EXPECT_EQ(sums[i], checksum_of(params[i].name, floats[i], {0, 1, 0, floats[i]}, whole.values[i]));
      ++compared;
    }
    EXPECT_GT(compared, 20U);
  }
}

// 128 ranks that train, and replicas of 8 that generate.
TEST(TransferPlan, LargeModelsArePlanned) {
  const Layout stages{.tp = 8, .pp = 8, .copies = 2}, shared{.tp = 8, .copies = 16, .zero3 = true},
      experts{.tp = 1, .pp = 8, .ep = 16}, replicas{.tp = 8, .copies = 4};
  for (const auto& [name, from] : {std::pair("dense-300b", stages),
                                   {"dense-300b", shared},
                                   {"qwen3-235b-a22b", experts},
                                   {"deepseek-v3", experts}}) {
    const ModelShape shape = shape_of(find_outline(name));
    const std::vector<ParamSpec> params = param_specs(shape);
    const TransferPlan plan = plan_transfer({shape, params, ranks_of(from, 0), ranks_of(replicas, 128)});
    int64_t floats = 0;
    for (const ParamSpec& spec : params) floats += spec.count();
    EXPECT_GE(plan.floats(), 4 * floats) << name;
  }
}

}  // namespace
}  // namespace collimate::shape

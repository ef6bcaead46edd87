#include "collimate/shape/transfer_plan.h"

#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/philox.h"

namespace collimate::shape {
namespace {

// Cuts local rows or columns [first, first + count) at the pieces, and returns where they are in the whole parameter.
std::vector<Piece> in_whole(const std::vector<Piece>& pieces, int64_t first, int64_t count) {
  std::vector<Piece> found;
  int64_t local = 0;
  for (const Piece& piece : pieces) {
    const int64_t begin = std::max(first, local), end = std::min(first + count, local + piece.count);
    if (begin < end) found.push_back({piece.first + begin - local, end - begin});
    local += piece.count;
  }
  return found;
}

// Returns the boxes of the values [begin, end) of a matrix with rows of `width`.
std::vector<Box> boxes_in(int64_t width, int64_t begin, int64_t end) {
  std::vector<Box> boxes;
  const int64_t last = end / width, behind = end % width;
  int64_t row = begin / width;
  const int64_t ahead = begin % width;
  if (row == last && begin < end) return {{row, 1, ahead, end - begin}};
  if (ahead > 0) boxes.push_back({row++, 1, ahead, width - ahead});
  if (row < last) boxes.push_back({row, last - row, 0, width});
  if (behind > 0) boxes.push_back({last, 1, 0, behind});
  return boxes;
}

struct ByPlace {
  bool operator()(const Box& a, const Box& b) const {
    return std::tie(a.row, a.rows, a.column, a.columns) < std::tie(b.row, b.rows, b.column, b.columns);
  }
};

// A Region is a box and the ranks that keep it, as indices.
struct Region {
  Box box;
  std::vector<int> ranks;
};

// A Side is the ranks of one layout, and says what each of them keeps of each parameter.
class Side {
 public:
  Side(const TransferRequest& request, const std::vector<WeightRank>& ranks) : request_(request), ranks_(ranks) {
    COLLIMATE_CHECK(!ranks.empty(), "a side without ranks");
    const ModelRank& first = ranks.front().place;
    stages_ = stages_of(request.params, request.whole, first.stage);
    for (int i = 0; i < std::ssize(ranks); ++i) {
      const ModelRank& place = base::at(ranks, i).place;
      by_stage_[place.stage.rank].push_back(i);
      by_experts_[{place.stage.rank, place.experts.rank}].push_back(i);
    }
  }

  const WeightRank& rank(int index) const { return base::at(ranks_, index); }

  std::vector<Region> regions(int param) const {
    const ParamSpec& spec = base::at(request_.params, param);
    std::map<Box, std::vector<int>, ByPlace> found;
    std::map<int, ParamSpec> pieces;  // by tensor rank
    for (const int index : holders(param)) {
      const WeightRank& of = rank(index);
      const auto mine = pieces.try_emplace(of.place.tensor.rank, spec);
      if (mine.second) mine.first->second = local(spec, of.place.tensor);
      for (const Box& box : kept_boxes(param, of, mine.first->second)) found[box].push_back(index);
    }
    std::vector<Region> regions;
    for (auto& [box, ranks] : found) regions.push_back({box, std::move(ranks)});
    return regions;
  }

 private:
  // Laid holds the parameters of one place, and the floats of its segments.
  struct Laid {
    std::vector<ParamSpec> specs;
    std::vector<int64_t> floats;
  };

  std::vector<int> holders(int param) const {
    const ParamSpec& spec = base::at(request_.params, param);
    const StageRank& stage = ranks_.front().place.stage;
    std::vector<int> found = of_stage(spec, base::at(stages_, param));
    if (!is_second_copy(spec, request_.whole, {stage.ranks - 1, stage.ranks})) return found;
    const std::vector<int> more = of_stage(spec, stage.ranks - 1);
    found.insert(found.end(), more.begin(), more.end());
    return found;
  }
  std::vector<int> of_stage(const ParamSpec& spec, int stage) const {
    const int expert_ranks = ranks_.front().place.experts.ranks;
    if (spec.expert >= 0 && expert_ranks > 1) {
      const auto found = by_experts_.find({stage, expert_rank_of(spec, request_.whole, expert_ranks)});
      return found == by_experts_.end() ? std::vector<int>() : found->second;
    }
    const auto found = by_stage_.find(stage);
    return found == by_stage_.end() ? std::vector<int>() : found->second;
  }

  std::vector<Box> kept_boxes(int param, const WeightRank& of, const ParamSpec& mine) const {
    const bool apart = mine.expert >= 0 && of.place.experts.ranks > 1;
    const ShareRank& share = apart ? of.experts : of.all;
    if (share.ranks == 1 || mine.part == Part::kAdapter) return boxes_of(mine, 0, mine.count());
    const Laid& laid = laid_out(of.place);
    const ParamSpec& placed = base::at(laid.specs, param);
    const Share kept = kept_of(base::at(laid.floats, placed.segment), share.rank, share.ranks);
    return boxes_of(placed, std::max<int64_t>(0, kept.begin - placed.offset),
                    std::min(placed.count(), kept.end - placed.offset));
  }

  const Laid& laid_out(const ModelRank& place) const {
    const std::vector<int> key = {place.tensor.rank, place.stage.rank, place.experts.rank};
    const auto [found, fresh] = laid_.try_emplace(key);
    if (fresh) {
      found->second.specs = local(request_.params, request_.whole, place);
      found->second.floats = segment_floats(found->second.specs);
    }
    return found->second;
  }

  const TransferRequest& request_;
  const std::vector<WeightRank>& ranks_;
  std::vector<int> stages_;  // by parameter
  std::map<int, std::vector<int>> by_stage_;
  std::map<std::pair<int, int>, std::vector<int>> by_experts_;  // by stage and expert rank
  mutable std::map<std::vector<int>, Laid> laid_;
};

// A Planner finds a source for every value of every destination.
class Planner {
 public:
  explicit Planner(const TransferRequest& request)
      : request_(request),
        from_(request, request.sources),
        to_(request, request.destinations),
        given_(request.sources.size()) {}

  TransferPlan plan() {
    for (int param = 0; param < std::ssize(request_.params); ++param) {
      const std::vector<Region> sources = from_.regions(param);
      for (const Region& wanted : to_.regions(param))
        for (const int destination : wanted.ranks) cover(param, wanted.box, destination, sources);
    }
    TransferPlan made;
    for (auto& [workers, slices] : routes_) made.routes.push_back({workers.first, workers.second, std::move(slices)});
    return made;
  }

 private:
  void cover(int param, const Box& box, int destination, const std::vector<Region>& sources) {
    const int worker = to_.rank(destination).worker;
    std::vector<Box> missing = {box};
    for (const bool here : {true, false})
      for (const Region& region : sources) {
        if (missing.empty()) return;
        const int local = here_of(region, worker);
        if ((local >= 0) == here) take(param, region, here ? local : -1, destination, missing);
      }
    COLLIMATE_CHECK(missing.empty(), "no source has {} of {}", missing.front().count(),
                    base::at(request_.params, param).name);
  }

  // Returns the region's rank on that worker, or -1 where there is none.
  int here_of(const Region& region, int worker) const {
    const auto found =
        std::ranges::find_if(region.ranks, [&](int index) { return from_.rank(index).worker == worker; });
    return found == region.ranks.end() ? -1 : *found;
  }

  // Takes from a region what is missing: from its rank `local` or, with -1, from the rank that has given the least.
  void take(int param, const Region& region, int local, int destination, std::vector<Box>& missing) {
    std::vector<Box> rest;
    for (const Box& box : missing) {
      const Box found = base::common(box, region.box);
      if (found.count() == 0) {
        rest.push_back(box);
        continue;
      }
      for (const Box& left : base::without(box, found)) rest.push_back(left);
      const int source =
          local >= 0 ? local
                     : *std::ranges::min_element(region.ranks, {}, [&](int index) { return base::at(given_, index); });
      if (local < 0) base::at(given_, source) += found.count();
      routes_[{from_.rank(source).worker, to_.rank(destination).worker}].push_back({param, found});
    }
    missing = std::move(rest);
  }

  const TransferRequest& request_;
  Side from_, to_;
  std::vector<int64_t> given_;  // floats that went to other devices, by source
  std::map<std::pair<int, int>, std::vector<Slice>> routes_;
};

}  // namespace

bool WeightRank::has_same(const WeightRank& other) const {
  const ModelRank &a = place, &b = other.place;
  return a.tensor == b.tensor && a.stage == b.stage && a.experts == b.experts && all == other.all &&
         experts == other.experts;
}

std::vector<Box> boxes_of(const ParamSpec& mine, int64_t begin, int64_t end) {
  if (mine.absent() || begin >= end) return {};
  std::vector<Box> boxes;
  for (const Box& box : boxes_in(mine.count() / mine.sizes[0], begin, end)) {
    if (mine.cut < 0) {
      boxes.push_back(box);
    } else if (mine.cut == 0) {
      for (const Piece& rows : in_whole(mine.pieces, box.row, box.rows))
        boxes.push_back({rows.first, rows.count, box.column, box.columns});
    } else {
      for (const Piece& columns : in_whole(mine.pieces, box.column, box.columns))
        boxes.push_back({box.row, box.rows, columns.first, columns.count});
    }
  }
  return boxes;
}

bool has_box(const ParamSpec& mine, const Box& box) {
  if (mine.absent()) return false;
  const bool rows = mine.cut == 0;
  const int64_t width = mine.count() / mine.sizes[0];
  const int64_t at = rows ? box.row : box.column, count = rows ? box.rows : box.columns;
  const bool fits = (rows || box.row + box.rows <= mine.sizes[0]) && (!rows || box.column + box.columns <= width);
  if (mine.cut < 0) return fits && at + count <= width;
  return fits && std::ranges::any_of(mine.pieces, [&](const Piece& piece) {
           return at >= piece.first && at + count <= piece.first + piece.count;
         });
}

int64_t Route::floats() const {
  return std::accumulate(slices.begin(), slices.end(), int64_t{0},
                         [](int64_t sum, const Slice& slice) { return sum + slice.box.count(); });
}

int64_t TransferPlan::floats() const {
  return std::accumulate(routes.begin(), routes.end(), int64_t{0},
                         [](int64_t sum, const Route& route) { return sum + route.floats(); });
}

int64_t TransferPlan::moved_floats() const {
  return std::accumulate(routes.begin(), routes.end(), int64_t{0}, [](int64_t sum, const Route& route) {
    return route.source == route.destination ? sum : sum + route.floats();
  });
}

TransferPlan plan_transfer(const TransferRequest& request) { return Planner(request).plan(); }

std::vector<std::vector<Slice>> buckets_of(const std::vector<Slice>& slices, int64_t most_floats) {
  std::vector<std::vector<Slice>> buckets;
  int64_t space = 0;
  for (Slice left : slices) {
    while (left.box.rows > 0) {
      if (space < left.box.columns) {
        buckets.emplace_back();
        space = std::max(most_floats, left.box.columns);
      }
      Slice part = left;
      part.box.rows = std::min(left.box.rows, space / left.box.columns);
      left.box.row += part.box.rows;
      left.box.rows -= part.box.rows;
      space -= part.box.count();
      buckets.back().push_back(part);
    }
  }
  return buckets;
}

uint64_t checksum_of(const std::string& name, int64_t width, const Box& box, std::span<const float> values) {
  const uint64_t basis = base::stable_hash(name);
  uint64_t sum = 0;
  size_t next = 0;
  for (int64_t r = 0; r < box.rows; ++r) {
    const auto first = static_cast<uint64_t>((box.row + r) * width + box.column);
    for (uint64_t c = 0; c < static_cast<uint64_t>(box.columns); ++c)
      sum += base::mix(basis, first + c) * std::bit_cast<uint32_t>(values[next++]);
  }
  return sum;
}

}  // namespace collimate::shape

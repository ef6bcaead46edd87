#include "collimate/shape/local.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/shape/mixture.h"
#include "collimate/shape/spec_builder.h"
#include "collimate/shape/vocabulary.h"

namespace collimate::shape {
namespace {

int64_t part_of(int64_t total, int ranks, const std::string& where, const char* what) {
  if (total % ranks != 0)
    throw base::InputError(base::expectation(where, fmt::format("a tp that divides the model's {} {}", total, what),
                                             fmt::format("tp {}", ranks), "another tp, or dp"));
  return total / ranks;
}

bool is_of_vocabulary(const ParamSpec& spec) { return spec.part == Part::kEmbedding || spec.part == Part::kHead; }

// Returns whether each rank gets some of the vocabulary where all get whole chunks of the softmax's sums.
bool cuts_vocabulary(int64_t vocabulary, int ranks) {
  return kVocabChunks % ranks == 0 && vocabulary > kVocabChunks / ranks * (ranks - 1) * vocab_chunk(vocabulary);
}

int cut_dim(const ParamSpec& spec, int ranks) {
  if (is_of_vocabulary(spec) && !cuts_vocabulary(spec.sizes[0], ranks)) return -1;
  for (size_t dim = 0; dim < spec.dims.size(); ++dim)
    if (spec.dims[dim].axis == "tp") return static_cast<int>(dim);
  return -1;
}

void cut(ParamSpec& spec, const TensorRank& of) {
  spec.cut = cut_dim(spec, of.ranks);
  if (spec.cut < 0) return;
  const DimSpec& dim = base::at(spec.dims, spec.cut);
  int64_t& size = base::at(spec.sizes, spec.cut);
  spec.whole = std::exchange(size, 0);
  int64_t first = 0;
  for (const int64_t block : dim.blocks.empty() ? std::vector<int64_t>{spec.whole} : dim.blocks) {
    const int64_t units = is_of_vocabulary(spec) ? kVocabChunks : block / dim.unit;
    const int64_t unit = units * of.rank / of.ranks, next = std::max(unit + 1, units * (of.rank + 1) / of.ranks);
    const int64_t begin = std::min(block, unit * dim.unit), end = std::min(block, next * dim.unit);
    spec.pieces.push_back({first + begin, end - begin, std::max<int64_t>(1, of.ranks / units)});
    size += end - begin;
    first += block;
  }
}

// Calls visit(offset in the whole's values, offset in the rank's, floats) for each run of values that is adjacent in
// both.
template <class Visit>
void for_each_run(const ParamSpec& mine, const Visit& visit) {
  COLLIMATE_CHECK(mine.cut >= 0, "{} is not cut", mine.name);
  const bool rows = mine.cut == 0;
  if (mine.absent()) return;
  const int64_t width = mine.count() / mine.sizes[0];
  const int64_t outer = rows ? 1 : mine.sizes[0], inner = rows ? width : 1;
  const int64_t here = rows ? mine.count() : width, there = rows ? mine.whole * width : mine.whole;
  for (int64_t o = 0; o < outer; ++o) {
    int64_t at = o * here;
    for (const Piece& piece : mine.pieces) {
      visit(o * there + piece.first * inner, at, piece.count * inner);
      at += piece.count * inner;
    }
  }
}

// block_cost() returns the weights that a token meets in a block, head_cost() those in the head.
int64_t block_cost(const ModelShape& shape, const Block& block) {
  const Attention& a = block.attention;
  const Mlp& mlp = block.mlp;
  const Experts& experts = mlp.experts;
  int64_t attention = shape.hidden * (a.query_width() + a.output_width());
  if (a.latent.kv_rank > 0)
    attention += (shape.hidden + a.heads * (a.head_dim + a.latent.value_dim)) * a.latent.kv_rank;
  else
    attention += shape.hidden * (a.kv_width() + a.value_width());
  const int64_t channels = experts.count > 0 ? 3 * (experts.per_token * experts.intermediate + experts.shared)
                                             : mlp.up_width() + mlp.intermediate;
  return attention + shape.hidden * channels;
}
int64_t head_cost(const ModelShape& shape) {
  return shape.head == Head::kLanguageModel ? shape.vocabulary * shape.table_width() : 0;
}

// Returns where each stage's blocks begin if no stage may cost more than `most`: the last stages are as full as
// possible, and each has one block at least. Where this is impossible, the first stage does not begin at 0.
std::vector<int64_t> begins_within(int64_t most, const std::vector<int64_t>& costs, int64_t head, int stages) {
  std::vector<int64_t> begins(static_cast<size_t>(stages));
  int64_t end = std::ssize(costs);
  for (int stage = stages - 1; stage >= 0; --stage) {
    int64_t sum = stage + 1 == stages ? head : 0, begin = end;
    while (begin > stage && (begin == end || sum + base::at(costs, begin - 1) <= most)) sum += base::at(costs, --begin);
    base::at(begins, stage) = end = begin;
  }
  return begins;
}

// Returns the cut whose most expensive stage is the cheapest.
std::vector<int64_t> best_begins(const std::vector<int64_t>& costs, int64_t head, int stages) {
  int64_t least = std::max(*std::ranges::max_element(costs), costs.back() + head),
          most = std::accumulate(costs.begin(), costs.end(), head);
  while (least < most) {
    const int64_t middle = least + (most - least) / 2;
    if (begins_within(middle, costs, head, stages).front() == 0) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return begins_within(most, costs, head, stages);
}

std::vector<BlockRange> ranges_of(const std::vector<int64_t>& layers) {
  std::vector<BlockRange> ranges;
  int64_t next = 0;
  for (const int64_t count : layers) {
    ranges.push_back({next, next + count});
    next += count;
  }
  return ranges;
}

// Returns the blocks of each stage. Where they are not given, the last stage is fixed first, then the blocks ahead of
// it are cut in the same way.
std::vector<BlockRange> stage_ranges(const ModelShape& whole, const StageRank& any) {
  const int stages = any.ranks * any.runs;
  std::vector<BlockRange> ranges(static_cast<size_t>(stages));
  if (stages == 1) return ranges;
  if (!any.layers.empty()) return ranges_of(any.layers);
  std::vector<int64_t> costs;
  for (const Block& block : whole.blocks) costs.push_back(block_cost(whole, block));
  int64_t head = head_cost(whole);
  for (int stage = stages - 1; stage >= 0; --stage) {
    const int64_t first = best_begins(costs, std::exchange(head, 0), stage + 1).back();
    base::at(ranges, stage) = {first, std::ssize(costs)};
    costs.resize(static_cast<size_t>(first));
  }
  return ranges;
}

// Returns the blocks of each run of a rank.
std::vector<BlockRange> own_ranges(const ModelShape& whole, const StageRank& of) {
  const std::vector<BlockRange> all = stage_ranges(whole, of);
  std::vector<BlockRange> own;
  for (int stage = of.rank; stage < std::ssize(all); stage += of.ranks) own.push_back(base::at(all, stage));
  return own;
}

// Returns whether the rank with the blocks of `mine` reads a parameter.
bool reads(const ParamSpec& spec, const ModelShape& mine, const StageRank& of) {
  if (is_second_copy(spec, mine, of)) return true;
  if (spec.runs_in == 0) return of.is_first();
  return spec.runs_in > mine.layers() ? of.is_last() : mine.has_block(spec.runs_in - 1);
}

void check_stages(const ModelShape& whole, const StageRank& of, const std::string& where) {
  const int stages = of.ranks * of.runs;
  if (whole.layers() < stages)
    throw base::InputError(
        base::expectation(where,
                          fmt::format("a pp{} of at most the model's {} blocks",
                                      of.runs > 1 ? " times virtual_stages" : "", whole.layers()),
                          fmt::format("pp {}{}", of.ranks, of.runs > 1 ? fmt::format(" times {}", of.runs) : ""),
                          of.runs > 1 ? "fewer virtual_stages, or a smaller pp" : "a smaller pp, tp or dp"));
  if (of.layers.empty()) return;
  COLLIMATE_CHECK(std::ssize(of.layers) == stages, "{} stages of {}", of.layers.size(), stages);
  const int64_t sum = std::accumulate(of.layers.begin(), of.layers.end(), int64_t{0});
  if (sum != whole.layers() || std::ranges::min(of.layers) < 1)
    throw base::InputError(base::expectation(
        where, fmt::format("stages of 1 block or more that are the model's {} together", whole.layers()),
        fmt::format("stages: [{}], which are {}", fmt::join(of.layers, ", "), sum),
        "other numbers of blocks, or leaving stages out"));
}

// Leaves the rank nothing of a parameter.
void leave_out(ParamSpec& spec, const std::vector<int64_t>& whole_sizes) {
  spec.sizes = whole_sizes;
  spec.cut = 0;
  spec.whole = std::exchange(spec.sizes[0], 0);
  spec.pieces.clear();
}

void cut_tensors(ModelShape& mine, const TensorRank& of, const std::string& where) {
  if (of.ranks == 1) return;
  for (Block& block : mine.blocks) {
    Attention& attention = block.attention;
    if (attention.norm_of_all)
      throw base::InputError(base::expectation(where,
                                               "tp 1, as the norms of queries and keys are of all heads together",
                                               fmt::format("tp {}", of.ranks), "pp, cp, zero or dp"));
    attention.all_heads = attention.heads;
    attention.heads = part_of(attention.heads, of.ranks, where, "attention heads");
    if (attention.kv_heads > of.ranks || of.ranks % attention.kv_heads != 0)
      attention.kv_heads = part_of(attention.kv_heads, of.ranks, where, "key-value heads");
    else
      attention.kv_heads = 1;  // one head, which several ranks share
    attention.first_head = of.rank * attention.heads;
    Mlp& mlp = block.mlp;
    mlp.intermediate = part_of(mlp.intermediate, of.ranks, where, "channels inside an MLP");
    mlp.experts.intermediate = part_of(mlp.experts.intermediate, of.ranks, where, "channels inside an expert");
    mlp.experts.shared = part_of(mlp.experts.shared, of.ranks, where, "channels inside its shared experts");
  }
}

void cut_experts(ModelShape& mine, const ExpertRank& of, const std::string& where) {
  if (of.ranks == 1) return;
  if (experts_of(mine) == nullptr)
    throw base::InputError(
        base::expectation(where, "ep 1, as the model has no experts", fmt::format("ep {}", of.ranks), "dp, tp or pp"));
  for (Block& block : mine.blocks) {
    Experts& experts = block.mlp.experts;
    if (experts.count == 0) continue;
    if (experts.count < of.ranks)
      throw base::InputError(base::expectation(where, fmt::format("an ep of at most the {} experts", experts.count),
                                               fmt::format("ep {}", of.ranks), "a smaller ep, or dp"));
    const Piece piece = expert_piece(experts, of);
    experts.first = piece.first;
    experts.own = piece.count;
  }
}

// Places the parameters of each segment one behind another.
void place(std::vector<ParamSpec>& specs) {
  std::map<int, int64_t> ends;
  for (ParamSpec& spec : specs) {
    int64_t& next = ends[spec.segment];
    spec.offset = spec.fused > 0 ? padded(next) : next;
    next = spec.offset + spec.count();
  }
}

}  // namespace

Piece expert_piece(const Experts& experts, const ExpertRank& of) {
  const int64_t first = experts.count * of.rank / of.ranks;
  return {first, experts.count * (of.rank + 1) / of.ranks - first};
}

int expert_rank_of(const ParamSpec& spec, const ModelShape& whole, int ranks) {
  if (spec.expert < 0 || ranks == 1) return 0;
  const Experts& experts = base::at(whole.blocks, spec.runs_in - 1).mlp.experts;
  int rank = 0;
  for (Piece piece = expert_piece(experts, {0, ranks}); spec.expert >= piece.first + piece.count;)
    piece = expert_piece(experts, {++rank, ranks});
  return rank;
}

int first_expert_segment(const std::vector<ParamSpec>& whole_specs) {
  return std::ranges::max(whole_specs, {}, &ParamSpec::segment).segment + 1;
}

bool is_cut(const ParamSpec& spec, int ranks) { return cut_dim(spec, ranks) >= 0; }

ModelShape local_shape(const ModelShape& whole, const ModelRank& of, const std::string& where) {
  ModelShape mine = whole;
  cut_tensors(mine, of.tensor, where);
  cut_experts(mine, of.experts, where);
  if (of.stage.ranks == 1) return mine;
  check_stages(whole, of.stage, where);
  mine.own_blocks = own_ranges(whole, of.stage);
  return mine;
}

bool is_second_copy(const ParamSpec& spec, const ModelShape& whole, const StageRank& of) {
  return of.ranks > 1 && of.is_last() && spec.part == Part::kEmbedding && is_linear(whole, spec);
}

int stage_of(const ParamSpec& spec, const ModelShape& whole, const StageRank& any) {
  return stages_of({spec}, whole, any).front();
}

std::vector<int> stages_of(const std::vector<ParamSpec>& specs, const ModelShape& whole, const StageRank& any) {
  std::vector<int> found;
  const std::vector<BlockRange> ranges = stage_ranges(whole, any);
  for (const ParamSpec& spec : specs) {
    const auto has_it = [&](const BlockRange& blocks) { return blocks.has(spec.runs_in - 1); };
    if (spec.runs_in == 0 || any.ranks == 1) {
      found.push_back(0);
    } else if (spec.runs_in > whole.layers()) {
      found.push_back(any.ranks - 1);
    } else {
      found.push_back(static_cast<int>(std::ranges::find_if(ranges, has_it) - ranges.begin()) % any.ranks);
    }
  }
  return found;
}

ParamSpec local(const ParamSpec& whole, const TensorRank& of) {
  ParamSpec mine = whole;
  if (of.ranks > 1) cut(mine, of);
  return mine;
}

std::vector<ParamSpec> local(std::vector<ParamSpec> specs, const ModelShape& whole, const ModelRank& of) {
  if (of.tensor.ranks == 1 && of.stage.ranks == 1 && of.experts.ranks == 1) return specs;
  ModelShape mine = whole;
  mine.own_blocks = own_ranges(whole, of.stage);
  const int expert_segment = first_expert_segment(specs);
  for (ParamSpec& spec : specs) {
    const std::vector<int64_t> sizes = spec.sizes;
    const bool of_others = spec.expert >= 0 && expert_rank_of(spec, whole, of.experts.ranks) != of.experts.rank;
    const bool here = reads(spec, mine, of.stage) && !of_others;
    spec = local(spec, of.tensor);
    if (!here) leave_out(spec, sizes);
    if (spec.expert >= 0 && of.experts.ranks > 1) spec.segment = expert_segment + spec.runs_in - 1;
  }
  place(specs);
  return specs;
}

Piece vocabulary_piece(const ModelShape& whole, const TensorRank& of) {
  ParamSpec head{.part = Part::kHead, .sizes = {whole.vocabulary}, .dims = {{"tp", {}, vocab_chunk(whole.vocabulary)}}};
  cut(head, of);
  return head.cut < 0 ? Piece{0, whole.vocabulary} : head.pieces.front();
}

void take_pieces(const ParamSpec& mine, std::span<const float> whole, std::span<float> out) {
  for_each_run(mine, [&](int64_t there, int64_t here, int64_t count) {
    std::copy_n(whole.begin() + there, count, out.begin() + here);
  });
}

void put_pieces(const ParamSpec& mine, std::span<const float> values, std::span<float> whole) {
  for_each_run(mine, [&](int64_t there, int64_t here, int64_t count) {
    std::copy_n(values.begin() + here, count, whole.begin() + there);
  });
}

}  // namespace collimate::shape

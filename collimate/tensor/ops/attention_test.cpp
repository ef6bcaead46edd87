#include "collimate/tensor/ops/attention.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "tests/support/base/rounds.h"
#include "tests/support/tensor/ops/packed_attention.h"

namespace collimate::tensor {
namespace {

double capped(const Packed& p, double score) {
  return p.shape.softcap > 0 ? p.shape.softcap * std::tanh(score / p.shape.softcap) : score;
}

// Computes attention in double, from qkv as given.
std::vector<double> reference(const Packed& p) {
  std::vector<double> out(static_cast<size_t>(p.rows * (p.out_width() + p.shape.heads)));
  const int64_t dim = p.shape.head_dim, value_dim = p.value_dim();
  for (const Document& d : p.documents) {
    for (int64_t t = 0; t < d.tokens; ++t) {
      for (int64_t h = 0; h < p.shape.heads; ++h) {
        const int64_t kv = h / (p.shape.heads / p.shape.kv_heads);
        const float* q = p.q() + (d.start + t) * p.stride + h * dim;
        std::vector<double> weight;
        double mass = 0;
        const int64_t first = p.shape.window == 0 ? 0 : std::max<int64_t>(0, t - p.shape.window + 1);
        for (int64_t j = first; j <= t; ++j) {
          double s = 0;
          for (int64_t i = 0; i < dim; ++i) s += double{q[i]} * p.k()[(d.start + j) * p.stride + kv * dim + i];
          const double slope = p.shape.alibi ? base::at(alibi_slopes(p.shape.heads), h) : 0;
          weight.push_back(std::exp(capped(p, s * p.scale()) + slope * static_cast<double>(j - t)));
          mass += weight.back();
        }
        for (int64_t i = 0; i < value_dim; ++i) {
          double sum = 0;
          for (int64_t j = first; j <= t; ++j) {
            sum += base::at(weight, j - first) / mass * p.v()[(d.start + j) * p.stride + kv * value_dim + i];
          }
          base::at(out, (d.start + t) * p.out_width() + h * value_dim + i) = sum;
        }
        base::at(out, p.rows * p.out_width() + (d.start + t) * p.shape.heads + h) = std::log(mass);
      }
    }
  }
  return out;
}

class Attention : public testing::TestWithParam<AttentionCase> {};

TEST_P(Attention, AgreesWithDoubleAndHasOneSetOfBitsHoweverItIsCut) {
  const Packed p(GetParam());
  const Floats whole = same_everywhere([&](const Exec& exec) { return forward(exec, p, 1000); });
  EXPECT_TRUE(close(whole, reference(p), 2e-5));
  for (const int64_t cut : {1, 7, 16, 50}) {
    EXPECT_TRUE(same_bits(forward(Exec{}, p, cut), whole)) << "in pieces of " << cut;
  }
}

TEST_P(Attention, ABf16CacheGivesTheBitsOfAnFp32OneOfItsValues) {
  Packed p(GetParam());
  const Floats before = forward(Exec{}, p, 1000);
  round_bf16(Exec{}, p.qkv.data() + p.width(), p.stride, p.rows, p.kv_width() + p.v_width());
  const Floats rounded = forward(Exec{}, p, 1000);
  EXPECT_FALSE(same_bits(rounded, before));
  for (const int64_t cut : {1, 7, 1000}) {
    const Floats from_bf16 =
        same_everywhere([&](const Exec& exec) { return forward(exec, p, cut, KvType::kBFloat16); });
    EXPECT_TRUE(same_bits(from_bf16, rounded)) << "in pieces of " << cut;
  }
}

TEST_P(Attention, ARowDoesNotSeeItsNeighbours) {
  Packed p(GetParam());
  const Floats whole = forward(Exec{}, p, 1000);
  const Document last = p.documents.back();
  // Every other sequence, and the last token of this one, become NaN.
  for (int64_t r = 0; r < p.rows; ++r) {
    if (r >= last.start && r < last.start + last.tokens - 1) continue;
    std::fill_n(p.qkv.begin() + r * p.stride, p.stride, std::nanf(""));
  }
  const Floats alone = forward(Exec{}, p, 1000);
  EXPECT_TRUE(same_bits(alone.data() + last.start * p.out_width(), whole.data() + last.start * p.out_width(),
                        (last.tokens - 1) * p.out_width()));
}

// All scores become what rounding leaves of 0, times 2^20; values of neighbours cancel.
void cancel_scores(Packed& p) {
  const int64_t dim = p.shape.head_dim;
  for (int64_t r = 0; r < p.rows; ++r) {
    float* q = p.qkv.data() + r * p.stride;
    float* k = q + p.width();
    float* v = k + p.kv_width();
    for (int64_t i = 0; i < p.width(); ++i) q[i] = std::ldexp(q[i], 20);
    make_repeating(q, p.shape.heads, dim);
    make_cancelling(k, p.shape.kv_heads, dim);
    if (r % 2 == 1)
      for (int64_t i = 0; i < p.v_width(); ++i) v[i] = -v[i - p.stride];
  }
}

TEST_P(Attention, CancellingScoresHaveOneSetOfBitsHoweverTheyAreCut) {
  Packed p(GetParam());
  cancel_scores(p);
  Floats whole;
  everywhere({1, 2}, [&](const Exec& exec, const std::string& where) {
    for (const int64_t cut : {1000, 1, 7, 16, 50}) {
      const Floats pieces = forward(exec, p, cut);
      if (whole.empty()) whole = pieces;
      EXPECT_TRUE(same_bits(pieces, whole)) << where << ", in pieces of " << cut;
    }
  });
  int64_t residues = 0;  // log-sum-exps that are not those of scores of 0
  const float* lse = whole.data() + p.rows * p.out_width();
  for (const Document& d : p.documents)
    for (int64_t t = 0; t < d.tokens; ++t)
      for (int64_t h = 0; h < p.shape.heads; ++h)
        if (std::fabs(lse[(d.start + t) * p.shape.heads + h] -
                      std::log(static_cast<double>(p.shape.window == 0 ? t + 1 : std::min(t + 1, p.shape.window)))) >
            1e-3)
          ++residues;
  EXPECT_GT(residues, p.rows * p.shape.heads / 2) << "the case would show nothing";
}

// Gradient of qkv; `saved` is what `forward` returned.
Floats backward(const Exec& exec, const Packed& p, const Floats& saved, const Floats& dout) {
  Floats g = constant(p.rows * p.stride, 0.0F);
  AttentionBackward b;
  b.heads = p.shape.heads, b.kv_heads = p.shape.kv_heads, b.head_dim = p.shape.head_dim, b.scores = p.scores();
  b.q = p.q(), b.q_stride = p.stride, b.k = p.k(), b.v = p.v(), b.kv_stride = p.stride;
  b.out = saved.data(), b.dout = dout.data(), b.out_stride = p.out_width(), b.value_dim = p.shape.value_dim;
  b.lse = saved.data() + p.rows * p.out_width();
  b.dq = g.data(), b.dq_stride = p.stride;
  b.dk = g.data() + p.width(), b.dv = b.dk + p.kv_width(), b.dkv_stride = p.stride;
  attention_backward(exec, b, p.documents);
  return g;
}

TEST_P(Attention, GradientIsTheSlope) {
  Packed p(GetParam());
  const Floats dout = noise(p.rows * p.out_width(), 9);
  const Floats saved = forward(Exec{}, p, 1000);
  const Floats gradient = same_everywhere([&](const Exec& exec) { return backward(exec, p, saved, dout); });
  const auto loss = [&] {
    const std::vector<double> out = reference(p);
    double sum = 0;
    for (size_t i = 0; i < dout.size(); ++i) sum += out[i] * dout[i];
    return sum;
  };
  const size_t step = std::max<size_t>(1, p.qkv.size() / base::rounds(40));
  for (size_t i = 0; i < p.qkv.size(); i += step) {
    const double want = slope(p.qkv, i, 1e-2F, loss);
    EXPECT_NEAR(gradient[i], want, 2e-4 * (1 + std::fabs(want))) << "element " << i;
  }
}

// A sequence of `prefix` tokens, then `lengths` that each continue it, against the same sequences written out whole.
struct Continued {
  Packed shared;
  Packed whole;
  std::vector<std::pair<int64_t, int64_t>> rows;  // of whole: the row of shared that it repeats

  Continued(AttentionCase c, int64_t prefix) : shared(with(c, prefix, 0)), whole(with(c, 0, prefix)) {
    for (size_t d = 1; d < shared.documents.size(); ++d) {
      Document& own = shared.documents[d];
      own.prefix = prefix;
      const Document& copy = whole.documents[d - 1];
      for (int64_t t = 0; t < prefix; ++t) rows.emplace_back(copy.start + t, t);
      for (int64_t t = 0; t < own.tokens; ++t) rows.emplace_back(copy.start + prefix + t, own.start + t);
    }
    for (const auto& [to, from] : rows)
      std::copy_n(shared.qkv.begin() + from * shared.stride, shared.stride, whole.qkv.begin() + to * whole.stride);
  }
  static AttentionCase with(AttentionCase c, int64_t ahead, int64_t more) {
    for (int64_t& length : c.lengths) length += more;
    if (ahead > 0) c.lengths.insert(c.lengths.begin(), ahead);
    return c;
  }
};

// Does what `forward` does, with each continuation a run behind the prefix: full blocks of the prefix are read, the
// last is copied.
Floats forward_continued(const Exec& exec, const Packed& p, int64_t prefix) {
  const KvLayout layout = p.layout();
  const int64_t full = prefix / KvLayout::kBlockTokens;
  int32_t next = 0;
  std::vector<std::vector<int32_t>> tables;
  std::vector<AttentionRun> runs;
  for (const Document& d : p.documents) {
    tables.emplace_back();
    if (d.prefix > 0) tables.back().assign(tables[0].begin(), tables[0].begin() + full);
    while (static_cast<int64_t>(tables.back().size()) < KvLayout::blocks_for(d.prefix + d.tokens))
      tables.back().push_back(next++);
    const int64_t tail = d.prefix % KvLayout::kBlockTokens;
    runs.push_back({d.start, d.tokens, d.prefix, tables.back().data(), tail, prefix - tail});
  }
  Floats storage = nans(next * kv_block_floats({}, layout));
  Floats result = constant(p.rows * (p.out_width() + p.shape.heads), -3.0F);
  append_kv(exec, layout, p.k(), p.stride, p.v(), p.stride, runs, storage.data());
  attention_forward(exec,
                    {layout, p.shape.heads, p.scores(), p.q(), p.stride, storage.data(), result.data(), p.out_width(),
                     result.data() + p.rows * p.out_width()},
                    runs);
  return result;
}

TEST_P(Attention, ContinuationsOfOneSequenceAreWhatWholeSequencesAre) {
  for (const int64_t prefix : {1, 16, 39, 70}) {
    const Continued c(GetParam(), prefix);
    const Floats shared = same_everywhere([&](const Exec& exec) { return forward_continued(exec, c.shared, prefix); });
    const Floats whole = forward(Exec{}, c.whole, 1000);
    const int64_t width = c.shared.out_width();
    for (const auto& [to, from] : c.rows)
      ASSERT_TRUE(same_bits(whole.data() + to * width, shared.data() + from * width, width)) << "row " << to;
    // A row of the prefix is reached from all sequences: in the whole ones it is given to the first of them.
    Floats dout = noise(c.shared.rows * width, 9), dwhole = constant(c.whole.rows * width, 0.0F);
    for (const auto& [to, from] : c.rows)
      if (from >= prefix || to < prefix) std::copy_n(dout.begin() + from * width, width, dwhole.begin() + to * width);
    const Floats got = same_everywhere([&](const Exec& exec) { return backward(exec, c.shared, shared, dout); });
    const Floats parts = backward(Exec{}, c.whole, whole, dwhole);
    std::vector<double> want(got.size());
    for (const auto& [to, from] : c.rows)
      for (int64_t i = 0; i < c.shared.stride; ++i)
        base::at(want, from * c.shared.stride + i) += base::at(parts, to * c.whole.stride + i);
    EXPECT_TRUE(close(got, want, 2e-5)) << "prefix " << prefix;
  }
}

// Part `part` of two of a gradient: every fourth of a document's tokens in turn attends in one of them or the other, in
// order. Keys and values lie some rows further on than queries.
Floats backward_of_part(const Exec& exec, const Packed& p, const Floats& saved, const Floats& dout, int64_t part) {
  constexpr int64_t kRows = 3;
  Floats moved = constant(kRows * p.stride, 1.0F), dmoved = constant((p.rows + kRows) * p.stride, 0.0F);
  moved.insert(moved.end(), p.qkv.begin(), p.qkv.end());
  AttentionBackward b;
  b.heads = p.shape.heads, b.kv_heads = p.shape.kv_heads, b.head_dim = p.shape.head_dim, b.scores = p.scores();
  b.q = p.q(), b.q_stride = p.stride, b.k = moved.data() + p.width(), b.v = b.k + p.kv_width(), b.kv_stride = p.stride;
  b.out = saved.data(), b.dout = dout.data(), b.out_stride = p.out_width(), b.value_dim = p.shape.value_dim;
  b.lse = saved.data() + p.rows * p.out_width();
  Floats g = constant(p.rows * p.stride, 0.0F);
  b.dq = g.data(), b.dq_stride = p.stride;
  b.dk = dmoved.data() + p.width(), b.dv = b.dk + p.kv_width(), b.dkv_stride = p.stride;
  std::vector<Document> parts;
  for (const Document& d : p.documents)
    for (int64_t chunk = part; chunk < 4; chunk += 2) {
      const int64_t from = d.tokens * chunk / 4, end = d.tokens * (chunk + 1) / 4;
      if (from < end)
        parts.push_back({d.start + kRows, end, d.prefix, d.prefix_start + kRows, Queries{d.start + from, end - from}});
    }
  attention_backward(exec, b, parts);
  for (size_t i = 0; i < g.size(); ++i) g[i] += base::at(dmoved, i + static_cast<size_t>(kRows * p.stride));
  return g;
}

TEST_P(Attention, GradientsOfPartsAddUp) {
  for (const int64_t prefix : {0, 39}) {
    Packed p = prefix == 0 ? Packed(GetParam()) : Continued(GetParam(), prefix).shared;
    const Floats dout = noise(p.rows * p.out_width(), 9);
    const Floats saved = prefix == 0 ? forward(Exec{}, p, 1000) : forward_continued(Exec{}, p, prefix);
    const Floats whole = backward(Exec{}, p, saved, dout);
    std::vector<double> sum(whole.size());
    for (const int64_t part : {0, 1}) {
      const Floats one =
          same_everywhere([&](const Exec& exec) { return backward_of_part(exec, p, saved, dout, part); });
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    }
    EXPECT_TRUE(close(whole, sum, 2e-5)) << "prefix " << prefix;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Attention,
                         testing::Values(AttentionCase{4, 2, 8, {5, 33, 17}}, AttentionCase{3, 3, 12, {70, 1, 40}},
                                         AttentionCase{6, 2, 16, {130, 20}}, AttentionCase{2, 1, 48, {64, 65}},
                                         AttentionCase{4, 1, 64, {30, 90}}, AttentionCase{30, 1, 8, {19, 3}},
                                         AttentionCase{2, 2, 128, {20}}, AttentionCase{1, 1, 256, {18}}));
// These cases have windows: within a chunk of 64 keys, of whole chunks, longer than a sequence.
INSTANTIATE_TEST_SUITE_P(Windows, Attention,
                         testing::Values(AttentionCase{4, 2, 8, {5, 33, 17}, 6},
                                         AttentionCase{3, 3, 12, {150, 1, 90}, 16},
                                         AttentionCase{6, 2, 16, {130, 20}, 64}, AttentionCase{2, 1, 48, {200, 65}, 70},
                                         AttentionCase{30, 1, 8, {90, 3}, 1}, AttentionCase{1, 1, 16, {18}, 400}));

// These have ALiBi; heads that are no power of two, more than a tile's rows, several to a kv head, and a window.
INSTANTIATE_TEST_SUITE_P(Alibi, Attention,
                         testing::Values(AttentionCase{4, 4, 8, {5, 33, 17}, 0, true},
                                         AttentionCase{6, 3, 12, {150, 1, 90}, 0, true},
                                         AttentionCase{30, 1, 8, {19, 3}, 0, true},
                                         AttentionCase{12, 12, 16, {130, 20}, 70, true}));

// Scores of these are bounded.
INSTANTIATE_TEST_SUITE_P(Softcap, Attention,
                         testing::Values(AttentionCase{4, 2, 8, {5, 33, 17}, 0, false, 1.5F},
                                         AttentionCase{30, 1, 12, {150, 1, 90}, 70, false, 0.5F}));

// Values of these have other sizes than keys.
INSTANTIATE_TEST_SUITE_P(Values, Attention,
                         testing::Values(AttentionCase{4, 2, 12, {5, 33, 17}, 0, false, 0, 8},
                                         AttentionCase{3, 3, 8, {150, 1, 90}, 70, false, 0, 20},
                                         AttentionCase{30, 1, 24, {19, 3}, 0, false, 0, 16},
                                         AttentionCase{2, 2, 192, {20}, 0, false, 0, 128}));

// A cache's values are read as they were written, also latents, which no attention could take.

TEST(AttentionShape, HeadsThatDoNotDivideAreRejected) {
  EXPECT_THROW(attention_forward(Exec{}, {.layout = {3, 16}, .heads = 4}, {}), base::InputError);
  EXPECT_THROW(attention_forward(Exec{}, {.layout = {2, 18}, .heads = 4}, {}), base::InputError);
}

}  // namespace
}  // namespace collimate::tensor

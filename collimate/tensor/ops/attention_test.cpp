#include "collimate/tensor/ops/attention.h"

#include <c10/util/BFloat16.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "tests/support/tensor/ops/same_everywhere.h"

namespace collimate::tensor {
namespace {

struct Case {
  int heads;
  int kv_heads;
  int head_dim;
  std::vector<int64_t> lengths;
  int64_t window = 0;
  bool alibi = false;
  float softcap = 0;
  int value_dim = 0;
};

// Packed sequences with q, k and v in one array, as a fused linear leaves them.
struct Packed {
  Case shape;
  int64_t rows = 0;
  int64_t stride = 0;
  std::vector<Document> documents;
  Floats qkv;

  explicit Packed(const Case& c) : shape(c) {
    for (const int64_t length : c.lengths) {
      documents.push_back({rows, length});
      rows += length;
    }
    stride = width() + kv_width() + v_width() + 4;
    qkv = noise(rows * stride, 5, 2.0F);
  }
  int64_t width() const { return int64_t{shape.heads} * shape.head_dim; }
  int64_t kv_width() const { return int64_t{shape.kv_heads} * shape.head_dim; }
  int64_t value_dim() const { return layout().value_width(); }
  int64_t v_width() const { return shape.kv_heads * value_dim(); }
  int64_t out_width() const { return shape.heads * value_dim(); }
  KvLayout layout(KvType type = KvType::kFloat32) const {
    return {shape.kv_heads, shape.head_dim, type, shape.value_dim};
  }
  const float* q() const { return qkv.data(); }
  const float* k() const { return q() + width(); }
  const float* v() const { return k() + kv_width(); }
  float scale() const { return 1.0F / std::sqrt(static_cast<float>(shape.head_dim)); }
};

// Blocks of all sequences, in an order of ids that is not ascending, with NaN wherever nothing was written.
struct Paged {
  KvLayout layout;
  std::vector<std::vector<int32_t>> tables;
  Floats storage;

  Paged(const Packed& p, KvType type) : layout(p.layout(type)) {
    int32_t next = 0;
    for (const Document& d : p.documents) next += static_cast<int32_t>(KvLayout::blocks_for(d.tokens));
    storage =
        constant(next * kv_block_floats({}, layout), std::bit_cast<float>(0x7fffffffU));  // NaN as fp32, bf16 and fp8
    for (const Document& d : p.documents) {
      std::vector<int32_t> ids;
      for (int64_t b = 0; b < KvLayout::blocks_for(d.tokens); ++b) ids.push_back(--next);
      tables.push_back(ids);
    }
  }
};

// out, then lse. The sequences go through in pieces of at most `cut` tokens; piece by piece appended, then attended.
Floats forward(const Exec& exec, const Packed& p, int64_t cut, KvType type = KvType::kFloat32) {
  Paged paged(p, type);
  Floats result = constant(p.rows * (p.out_width() + p.shape.heads), -3.0F);
  const AttentionForward args{paged.layout,   p.shape.heads,   p.scale(),
                              p.q(),          p.stride,        paged.storage.data(),
                              result.data(),  p.out_width(),   result.data() + p.rows * p.out_width(),
                              p.shape.window, p.shape.softcap, p.shape.alibi};
  for (int64_t at = 0;; at += cut) {
    std::vector<AttentionRun> runs;
    for (size_t s = 0; s < p.documents.size(); ++s) {
      const Document& d = p.documents[s];
      if (at < d.tokens) runs.push_back({d.start + at, std::min(cut, d.tokens - at), at, paged.tables[s].data()});
    }
    if (runs.empty()) break;
    append_kv(exec, paged.layout, p.k(), p.stride, p.v(), p.stride, runs, paged.storage.data());
    attention_forward(exec, args, runs);
  }
  return result;
}

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

class Attention : public testing::TestWithParam<Case> {};

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

// The nearest of all values that a byte has in E4M3, the even one where two are as near.
float nearest_fp8(float x) {
  float best = 0, distance = std::numeric_limits<float>::infinity();
  for (int code = 0; code < 0x7f; ++code) {
    const int exponent = code >> 3, mantissa = code & 7;
    const float value = exponent == 0 ? std::ldexp(static_cast<float>(mantissa), -9)
                                      : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
    const float away = std::abs(std::abs(x) - value);
    if (away < distance || (away == distance && code % 2 == 0)) best = value, distance = away;
  }
  return std::copysign(best, x);
}

// A token's keys or values of a head, rounded beside the largest of them.
void round_int8(float* x, int64_t count) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(x[i]));
  const float scale = largest / 127, inverse = 1 / scale;
  for (int64_t i = 0; i < count; ++i) x[i] = std::nearbyint(x[i] * inverse) * scale + 0.0F;  // no negative zero
}

// Rows of a head's keys or values as a cache of that type keeps them.
void round_rows(KvType type, float* x, int64_t rows, int64_t width) {
  if (type == KvType::kBFloat16) round_bf16({}, x, width, rows, width);
  if (type == KvType::kFp8) std::transform(x, x + rows * width, x, nearest_fp8);
  for (int64_t r = 0; r < rows && type == KvType::kInt8; ++r) round_int8(x + r * width, width);
}

void round_as(KvType type, Packed& p) {
  for (int64_t r = 0; r < p.rows; ++r)
    for (int64_t head = 0; head < 2 * p.shape.kv_heads; ++head) {
      const bool key = head < p.shape.kv_heads;
      const int64_t width = key ? p.shape.head_dim : p.value_dim(), number = key ? head : head - p.shape.kv_heads;
      float* x = p.qkv.data() + r * p.stride + p.width() + (key ? 0 : p.kv_width()) + number * width;
      round_rows(type, x, 1, width);
    }
}

TEST_P(Attention, ACacheOfOneByteGivesTheBitsOfAnFp32OneOfItsValues) {
  for (const KvType type : {KvType::kInt8, KvType::kFp8}) {
    Packed p(GetParam());
    const int64_t keys = p.width(), values = keys + p.kv_width();
    base::at(p.qkv, keys) = 0.0F;
    base::at(p.qkv, keys + 1) = 1e-3F;   // below the least normal value of E4M3
    base::at(p.qkv, values + 2) = 1e3F;  // above its largest
    const Floats from_bytes = same_everywhere([&](const Exec& exec) { return forward(exec, p, 7, type); });
    EXPECT_TRUE(same_bits(forward(Exec{}, p, 1000, type), from_bytes));
    EXPECT_FALSE(same_bits(forward(Exec{}, p, 1000), from_bytes));
    round_as(type, p);
    EXPECT_TRUE(same_bits(forward(Exec{}, p, 1000), from_bytes));
  }
}

TEST(AttentionCache, ABlockOfOneByteIsSmaller) {
  const auto floats = [](KvType type) { return kv_block_floats({}, {4, 64, type}); };
  EXPECT_EQ(floats(KvType::kBFloat16) * 2, floats(KvType::kFloat32));
  EXPECT_EQ(floats(KvType::kFp8) * 4, floats(KvType::kFloat32));
  EXPECT_EQ(floats(KvType::kInt8), floats(KvType::kFp8) + 2 * 4 * 16);
}

// What is not finite shows in the result.
TEST(AttentionCache, RoundingToOneByteHidesNothing) {
  for (const KvType type : {KvType::kInt8, KvType::kFp8})
    for (const float wrong : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      Packed p(Case{2, 1, 8, {5}});
      base::at(p.qkv, p.width() + p.kv_width() + 3) = wrong;
      const Floats out = forward(Exec{}, p, 1000, type);
      EXPECT_TRUE(std::isnan(out[3])) << static_cast<int>(type) << " " << wrong;
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
  b.heads = p.shape.heads, b.kv_heads = p.shape.kv_heads, b.head_dim = p.shape.head_dim, b.scale = p.scale();
  b.q = p.q(), b.q_stride = p.stride, b.k = p.k(), b.v = p.v(), b.kv_stride = p.stride;
  b.out = saved.data(), b.dout = dout.data(), b.out_stride = p.out_width(), b.value_dim = p.shape.value_dim;
  b.lse = saved.data() + p.rows * p.out_width();
  b.dq = g.data(), b.dq_stride = p.stride;
  b.dk = g.data() + p.width(), b.dv = b.dk + p.kv_width(), b.dkv_stride = p.stride;
  b.window = p.shape.window;
  b.alibi = p.shape.alibi;
  b.softcap = p.shape.softcap;
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
  const size_t step = std::max<size_t>(1, p.qkv.size() / 40);
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

  Continued(Case c, int64_t prefix) : shared(with(c, prefix, 0)), whole(with(c, 0, prefix)) {
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
  static Case with(Case c, int64_t ahead, int64_t more) {
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
                    {layout, p.shape.heads, p.scale(), p.q(), p.stride, storage.data(), result.data(), p.out_width(),
                     result.data() + p.rows * p.out_width(), p.shape.window, p.shape.softcap, p.shape.alibi},
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

INSTANTIATE_TEST_SUITE_P(Shapes, Attention,
                         testing::Values(Case{4, 2, 8, {5, 33, 17}}, Case{3, 3, 12, {70, 1, 40}},
                                         Case{6, 2, 16, {130, 20}}, Case{2, 1, 48, {64, 65}}, Case{4, 1, 64, {30, 90}},
                                         Case{30, 1, 8, {19, 3}}, Case{2, 2, 128, {20}}, Case{1, 1, 256, {18}}));
// These cases have windows: within a chunk of 64 keys, of whole chunks, longer than a sequence.
INSTANTIATE_TEST_SUITE_P(Windows, Attention,
                         testing::Values(Case{4, 2, 8, {5, 33, 17}, 6}, Case{3, 3, 12, {150, 1, 90}, 16},
                                         Case{6, 2, 16, {130, 20}, 64}, Case{2, 1, 48, {200, 65}, 70},
                                         Case{30, 1, 8, {90, 3}, 1}, Case{1, 1, 16, {18}, 400}));

// These have ALiBi; heads that are no power of two, more than a tile's rows, several to a kv head, and a window.
INSTANTIATE_TEST_SUITE_P(Alibi, Attention,
                         testing::Values(Case{4, 4, 8, {5, 33, 17}, 0, true}, Case{6, 3, 12, {150, 1, 90}, 0, true},
                                         Case{30, 1, 8, {19, 3}, 0, true}, Case{12, 12, 16, {130, 20}, 70, true}));

// Scores of these are bounded.
INSTANTIATE_TEST_SUITE_P(Softcap, Attention,
                         testing::Values(Case{4, 2, 8, {5, 33, 17}, 0, false, 1.5F},
                                         Case{30, 1, 12, {150, 1, 90}, 70, false, 0.5F}));

// Values of these have other sizes than keys.
INSTANTIATE_TEST_SUITE_P(Values, Attention,
                         testing::Values(Case{4, 2, 12, {5, 33, 17}, 0, false, 0, 8},
                                         Case{3, 3, 8, {150, 1, 90}, 70, false, 0, 20},
                                         Case{30, 1, 24, {19, 3}, 0, false, 0, 16},
                                         Case{2, 2, 192, {20}, 0, false, 0, 128}));

// What a cache keeps is read as it was written, also latents, which no attention could take.
TEST(ReadKv, GivesWhatWasAppended) {
  for (const KvType type : {KvType::kFloat32, KvType::kBFloat16, KvType::kInt8, KvType::kFp8}) {
    const KvLayout layout{2, 12, type, 300};
    const int64_t key_width = 2 * 12, value_width = 2 * 300, tokens = 37;
    Floats k = noise(tokens * key_width, 3), v = noise(tokens * value_width, 4), kept_k = k, kept_v = v;
    round_rows(type, kept_k.data(), 2 * tokens, 12);
    round_rows(type, kept_v.data(), 2 * tokens, 300);
    if (type == KvType::kBFloat16) k = kept_k, v = kept_v;  // which are rounded ahead of it
    const std::vector<int32_t> table = {2, 0, 3};
    Floats storage = nans(4 * kv_block_floats({}, layout));
    const std::vector<AttentionRun> all = {{0, tokens, 0, table.data()}};
    append_kv({}, layout, k.data(), key_width, v.data(), value_width, all, storage.data());
    const std::vector<AttentionRun> pieces = {{20, 17, 20, table.data()}, {0, 20, 0, table.data()}};
    Floats read_k = nans(tokens * key_width), read_v = nans(tokens * value_width);
    read_kv({}, layout, storage.data(), pieces, read_k.data(), key_width, read_v.data(), value_width);
    EXPECT_TRUE(same_bits(read_k, kept_k)) << static_cast<int>(type);
    EXPECT_TRUE(same_bits(read_v, kept_v)) << static_cast<int>(type);
  }
}

TEST(AttentionShape, HeadsThatDoNotDivideAreRejected) {
  EXPECT_THROW(attention_forward(Exec{}, {.layout = {3, 16}, .heads = 4}, {}), base::InputError);
  EXPECT_THROW(attention_forward(Exec{}, {.layout = {2, 18}, .heads = 4}, {}), base::InputError);
}

TEST(RoundBf16, RoundsAsTorchAndLeavesTheRestOfARow) {
  const int64_t rows = 3, stride = 40, width = 35;
  Floats x = noise(rows * stride, 9, 3.0F);
  x[1] = std::bit_cast<float>(0x3f808000U);  // half way, to even: down
  x[2] = std::bit_cast<float>(0x3f818000U);  // half way, to even: up
  x[3] = std::numeric_limits<float>::quiet_NaN();
  x[4] = std::numeric_limits<float>::infinity();
  const Floats rounded = same_everywhere([&](const Exec& exec) {
    Floats y = x;
    round_bf16(exec, y.data(), stride, rows, width);
    return y;
  });
  for (int64_t i = 0; i < rows * stride; ++i) {
    const float value = base::at(x, i);
    const float expected = i % stride < width ? static_cast<float>(c10::BFloat16(value)) : value;
    EXPECT_TRUE(base::at(rounded, i) == expected || (std::isnan(value) && i == 3)) << i;
  }
  EXPECT_TRUE(std::isnan(rounded[3]));
}

}  // namespace
}  // namespace collimate::tensor

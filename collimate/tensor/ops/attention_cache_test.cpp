#include <c10/util/BFloat16.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "collimate/base/at.h"
#include "tests/support/tensor/ops/packed_attention.h"

// Tests say what caches round keys and values to, and that attention over them is attention over the rounded values.
namespace collimate::tensor {
namespace {

class AttentionCache : public testing::TestWithParam<AttentionCase> {};

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

TEST_P(AttentionCache, ACacheOfOneByteGivesTheBitsOfAnFp32OneOfItsValues) {
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

TEST(AttentionCacheBlock, ABlockOfOneByteIsSmaller) {
  const auto floats = [](KvType type) { return kv_block_floats({}, {4, 64, type}); };
  EXPECT_EQ(floats(KvType::kBFloat16) * 2, floats(KvType::kFloat32));
  EXPECT_EQ(floats(KvType::kFp8) * 4, floats(KvType::kFloat32));
  EXPECT_EQ(floats(KvType::kInt8), floats(KvType::kFp8) + 2 * 4 * 16);
}

// Keys and values that are not finite show in the result.
TEST(AttentionCacheBlock, RoundingToOneByteHidesNothing) {
  for (const KvType type : {KvType::kInt8, KvType::kFp8})
    for (const float wrong : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      Packed p(AttentionCase{2, 1, 8, {5}});
      base::at(p.qkv, p.width() + p.kv_width() + 3) = wrong;
      const Floats out = forward(Exec{}, p, 1000, type);
      EXPECT_TRUE(std::isnan(out[3])) << static_cast<int>(type) << " " << wrong;
    }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, AttentionCache,
    testing::Values(AttentionCase{4, 2, 16, {70, 5}}, AttentionCase{6, 6, 12, {33, 80}},
                    AttentionCase{8, 1, 64, {90}, 20}, AttentionCase{2, 2, 256, {67}},
                    AttentionCase{.heads = 4, .kv_heads = 4, .head_dim = 24, .lengths = {40, 65}, .value_dim = 20}));

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

// Beside numbers without a scale, a zero stays a zero.
TEST(ReadKv, GivesZerosForNumbersTooSmallForInt8) {
  const KvLayout layout{1, 4, KvType::kInt8};
  const Floats k = {0, 1e-39F, -2e-40F, 3e-41F}, v = {1e-37F, 0, -1e-37F, 2e-43F};
  const int32_t table = 0;
  const std::vector<AttentionRun> all = {{0, 1, 0, &table}};
  Floats storage = nans(kv_block_floats({}, layout)), read_k = nans(4), read_v = nans(4);
  append_kv({}, layout, k.data(), 4, v.data(), 4, all, storage.data());
  read_kv({}, layout, storage.data(), all, read_k.data(), 4, read_v.data(), 4);
  EXPECT_EQ(read_k, constant(4, 0));
  EXPECT_EQ(read_v, constant(4, 0));
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

#include "collimate/model/parallel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "collimate/base/at.h"
#include "tests/support/base/error_of.h"
#include "tests/support/comm/ranks.h"
#include "tests/support/tensor/watched_device.h"

namespace collimate::model {
namespace {

constexpr int64_t kRows = 7, kInputs = 32, kOutputs = 24, kVocabulary = 20;

std::vector<float> wave(int64_t count, double phase) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(std::sin(0.37 * static_cast<double>(i) + phase)));
  return values;
}

// Columns [first, first + count) of a row-major [rows, width].
std::vector<float> columns(const std::vector<float>& all, int64_t width, int64_t first, int64_t count) {
  std::vector<float> piece;
  for (size_t row = 0; row < all.size() / static_cast<size_t>(width); ++row) {
    const auto begin = all.begin() + static_cast<int64_t>(row) * width + first;
    piece.insert(piece.end(), begin, begin + count);
  }
  return piece;
}

std::vector<float> rows_of(const std::vector<float>& all, int64_t width, int64_t first, int64_t count) {
  return {all.begin() + first * width, all.begin() + (first + count) * width};
}

// Ranks as threads; each failure is thrown here.
void with_ranks(int size, const std::function<void(ParallelAxis)>& body) {
  static int run = 0;
  const std::string name = "parallel_test " + std::to_string(run++);
  const comm::Mesh mesh({{"dp", 1}, {"tp", size}});
  comm::with_ranks(size, name, [&](comm::Group& group) { body(ParallelAxis(mesh, "tp", group.rank(), group)); });
}

struct Whole {
  std::vector<float> x = wave(kRows * kInputs, 0), w = wave(kOutputs * kInputs, 1), b = wave(kOutputs, 2);
  std::vector<float> dy = wave(kRows * kOutputs, 3);
  std::vector<float> y = std::vector<float>(kRows * kOutputs), dx = std::vector<float>(kRows * kInputs);
  std::vector<float> dw = wave(kOutputs * kInputs, 4), db = wave(kOutputs, 5);  // gradients are added to
  const std::vector<float> dw_before = dw, db_before = db;

  explicit Whole(int chunks) {
    tensor::LinearPanels panels;
    tensor::pack_linear({}, w.data(), kOutputs, kInputs, tensor::ComputeType::kFloat32, chunks, panels);
    tensor::linear({}, x.data(), kInputs, kRows, panels, y.data(), kOutputs, {b.data(), false});
    tensor::linear_grad_input({}, tensor::ComputeType::kFloat32, dy.data(), kOutputs, kRows, w.data(), kOutputs,
                              kInputs, dx.data(), kInputs);
    tensor::linear_grad_weight({}, tensor::ComputeType::kFloat32, dy.data(), kOutputs, x.data(), kInputs, kRows,
                               kOutputs, kInputs, dw.data(), db.data());
  }
};

class Parallel : public ::testing::TestWithParam<int> {};

TEST_P(Parallel, ColumnsEqualOneRank) {
  const Whole whole(1);
  with_ranks(GetParam(), [&](ParallelAxis axis) {
    const int64_t own = kOutputs / axis.size, first = axis.rank * own;
    ColumnParallelLinear layer(axis, kInputs, kOutputs);
    const auto w = rows_of(whole.w, kInputs, first, own), b = rows_of(whole.b, 1, first, own);
    layer.set_weight({}, w.data(), b.data());
    std::vector<float> y(static_cast<size_t>(kRows * own)), dx(whole.dx.size());
    layer.forward({}, whole.x.data(), kRows, y.data());
    EXPECT_EQ(y, columns(whole.y, kOutputs, first, own));
    auto dw = rows_of(whole.dw_before, kInputs, first, own), db = rows_of(whole.db_before, 1, first, own);
    const auto dy = columns(whole.dy, kOutputs, first, own);
    layer.backward({}, dy.data(), whole.x.data(), kRows, dx.data(), dw.data(), db.data());
    EXPECT_EQ(dw, rows_of(whole.dw, kInputs, first, own));
    EXPECT_EQ(db, rows_of(whole.db, 1, first, own));
    for (size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], whole.dx[i], 1e-5F) << i;
  });
}

// Bit for bit: the ranks' sums are the upper levels of the chunks' tree.
TEST_P(Parallel, RowsEqualOneRankInChunks) {
  const Whole whole(4);
  with_ranks(GetParam(), [&](ParallelAxis axis) {
    const int64_t own = kInputs / axis.size, first = axis.rank * own;
    RowParallelLinear layer(axis, kInputs, kOutputs, 4);
    const auto w = columns(whole.w, kInputs, first, own), x = columns(whole.x, kInputs, first, own);
    layer.set_weight({}, w.data(), whole.b.data());
    std::vector<float> y(whole.y.size()), dx(static_cast<size_t>(kRows * own));
    layer.forward({}, x.data(), kRows, y.data());
    EXPECT_EQ(y, whole.y);
    auto dw = columns(whole.dw_before, kInputs, first, own), db = whole.db_before;
    layer.backward({}, whole.dy.data(), x.data(), kRows, dx.data(), dw.data(), db.data());
    EXPECT_EQ(dx, columns(whole.dx, kInputs, first, own));
    EXPECT_EQ(dw, columns(whole.dw, kInputs, first, own));
    EXPECT_EQ(db, whole.db);
  });
}

TEST_P(Parallel, EmbeddingEqualsOneRank) {
  const auto table = wave(kVocabulary * kInputs, 6), dout = wave(kRows * kInputs, 7);
  const std::vector<int32_t> ids = {0, 19, 5, 5, 10, 9, 14};
  with_ranks(GetParam(), [&](ParallelAxis axis) {
    const int64_t own = kVocabulary / axis.size, first = axis.rank * own;
    const ParallelEmbedding layer(axis, kVocabulary, kInputs);
    const auto piece = rows_of(table, kInputs, first, own);
    std::vector<float> out(static_cast<size_t>(kRows * kInputs)), dtable(piece.size());
    layer.forward({}, piece.data(), ids.data(), kRows, out.data());
    for (size_t row = 0; row < ids.size(); ++row)
      EXPECT_EQ(rows_of(out, kInputs, static_cast<int64_t>(row), 1), rows_of(table, kInputs, ids[row], 1)) << row;
    layer.backward(dout.data(), ids.data(), kRows, dtable.data());
    for (int64_t i = 0; i < own; ++i)
      for (int64_t c = 0; c < kInputs; ++c) {
        float expected = 0;
        for (size_t row = 0; row < ids.size(); ++row)
          if (ids[row] == first + i) expected += dout[row * kInputs + static_cast<size_t>(c)];
        EXPECT_EQ(base::at(dtable, i * kInputs + c), expected);
      }
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Parallel, ::testing::Values(1, 2, 4));

// One rank whose sums, doubled, are there when a device follows them and not before.
class LateGroup final : public comm::Group, public test::WatchedDevice {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  tensor::Pending all_reduce(std::span<float> values) override {
    const auto completion = std::make_shared<tensor::Completion>("rank 0", "late group");
    late_ = [values, completion] {
      for (float& value : values) value *= 2;
      completion->finish();
    };
    return completion->pending();
  }
  void follow(tensor::Stream*, const tensor::Pending& work, double deadline_seconds) const override {
    late_();
    work.wait(deadline_seconds);
  }
  tensor::Pending all_reduce_max(std::span<float>) override { return {}; }
  tensor::Pending reduce_scatter(std::span<const float>, std::span<float>) override { return {}; }
  tensor::Pending all_gather(std::span<const std::byte>, std::span<std::byte>) override { return {}; }
  tensor::Pending broadcast(std::span<std::byte>, int) override { return {}; }
  tensor::Pending all_to_all(std::span<const std::byte>, std::span<std::byte>) override { return {}; }
  void send(std::span<const std::byte>, int) override {}
  void receive(std::span<std::byte>, int) override {}
  void barrier() override {}
  void abort(const std::string&) override {}

 private:
  std::function<void()> late_;
};

TEST(ParallelLayers, ResultsAreThereWhenTheCallReturns) {
  LateGroup group;
  const tensor::Exec exec{nullptr, &group};
  const ParallelAxis axis(comm::Mesh({{"tp", 1}}), "tp", 0, group);
  const ParallelEmbedding embedding(axis, 2, 3);
  const std::vector<float> table = {1, 2, 3, 4, 5, 6};
  const int32_t id = 1;
  std::vector<float> out(3);
  embedding.forward(exec, table.data(), &id, 1, out.data());
  EXPECT_EQ(out, (std::vector<float>{8, 10, 12}));
  const Whole whole(1);
  RowParallelLinear row(axis, kInputs, kOutputs, 1);
  row.set_weight(exec, whole.w.data(), whole.b.data());
  std::vector<float> y(whole.y.size());
  row.forward(exec, whole.x.data(), kRows, y.data());
  for (size_t i = 0; i < y.size(); ++i) {
    const float bias = whole.b[i % static_cast<size_t>(kOutputs)];
    EXPECT_NEAR(y[i] - bias, 2 * (whole.y[i] - bias), 1e-4F) << i;
  }
  ColumnParallelLinear column(axis, kInputs, kOutputs);
  column.set_weight(exec, whole.w.data(), whole.b.data());
  std::vector<float> dx(whole.dx.size());
  auto dw = whole.dw_before, db = whole.db_before;
  column.backward(exec, whole.dy.data(), whole.x.data(), kRows, dx.data(), dw.data(), db.data());
  for (size_t i = 0; i < dx.size(); ++i) EXPECT_NEAR(dx[i], 2 * whole.dx[i], 1e-4F) << i;
}

TEST(ParallelLayers, SizesThatDoNotDivideAreNamed) {
  const auto group = comm::null_group();
  EXPECT_THROW(ParallelEmbedding(ParallelAxis(comm::Mesh({{"tp", 2}}), "tp", 0, *group), 20, 8), std::logic_error);
  EXPECT_EQ(base::message_of([&] { with_ranks(2, [](ParallelAxis axis) { ColumnParallelLinear(axis, 8, 7); }); }),
            "[tensor parallel outputs] expected a multiple of 2 ranks, got 7");
}

}  // namespace
}  // namespace collimate::model

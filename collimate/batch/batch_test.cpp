#include "collimate/batch/batch.h"

#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <gtest/gtest.h>

#include "collimate/base/at.h"
#include "collimate/base/error.h"
#include "collimate/batch/standard_keys.h"
#include "tests/support/base/error_of.h"

namespace collimate::batch {
namespace {

// The column has the experts that a router chose for each token: [T, L, k] of 2 layers and 3 choices.
const Key<int32_t> kRouter{.name = "router", .inner = {2, 3}, .ragged = true};

// Makes the choices of sample i, which has i % 3 tokens: no two numbers are equal.
std::vector<int32_t> choices(int64_t i) {
  std::vector<int32_t> values;
  for (int64_t place = 0; place < i % 3 * 6; ++place) values.push_back(static_cast<int32_t>(100 * i + place));
  return values;
}

std::vector<int32_t> choices_in(const Batch& batch, int64_t row) {
  const auto values = batch.row(kRouter, row);
  return {values.begin(), values.end()};
}

Batch sample(int64_t first, int64_t rows) {
  Batch out;
  std::vector<int64_t> uids;
  std::vector<std::vector<int32_t>> ids, routes;
  std::vector<nlohmann::json> examples;
  for (int64_t i = first; i < first + rows; ++i) {
    uids.push_back(i);
    ids.emplace_back(i % 3, static_cast<int32_t>(i));
    routes.push_back(choices(i));
    examples.push_back({{"answer", i}});
  }
  out.set(kUid, uids);
  out.set_ragged(kIds, ids);
  out.set_json(kExample, examples);
  out.set_ragged(kRouter, routes);
  return out;
}

TEST(Batch, SliceAndConcatenationCopyNothing) {
  const std::vector<Batch> parts = {sample(0, 5), sample(5, 4), sample(9, 3)};
  const Batch whole = Batch::concatenate(parts);
  const Batch middle = whole.slice(3, 11).slice(1, 7);
  EXPECT_EQ(middle.rows(), 6);
  for (int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(middle.get(kUid, i), i + 4);
    EXPECT_EQ(middle.row(kIds, i).size(), static_cast<size_t>((i + 4) % 3));
    EXPECT_EQ(middle.json(kExample, i)["answer"], i + 4);
    EXPECT_EQ(middle.length("router", i), (i + 4) % 3);
    EXPECT_EQ(choices_in(middle, i), choices(i + 4));
  }
  EXPECT_EQ(middle.row(kIds, 1).data(), parts[1].row(kIds, 0).data());
  EXPECT_EQ(middle.row(kRouter, 1).data(), parts[1].row(kRouter, 0).data());
  EXPECT_EQ(&middle.json(kExample, 1), &parts[1].json(kExample, 0));
  EXPECT_EQ(whole.gather(std::vector<int64_t>{6, 7}).row(kIds, 0).data(), parts[1].row(kIds, 1).data());
  const Batch whole_chunks = middle.contiguous();
  EXPECT_NE(&whole_chunks.json(kExample, 1), &parts[1].json(kExample, 0));
  EXPECT_EQ(whole_chunks.all(kRouter), middle.all(kRouter));
}

TEST(Batch, TokenMatrixColumnsKeepTheirInnerShape) {
  ColumnSchema schema{.name = "router", .inner = {2, 3}, .ragged = true};  // [T, L, k]
  at::Tensor values = at::rand({5, 2, 3});
  Batch batch;
  batch.set_tensor(schema, values, {0, 2, 5});
  const auto second = batch.row(Key<float>{.name = "router", .inner = {2, 3}, .ragged = true}, 1);
  EXPECT_EQ(second.size(), 18U);
  EXPECT_TRUE(std::equal(second.begin(), second.end(), values.data_ptr<float>() + 12));
  EXPECT_THROW(batch.set_tensor(schema, values, {0, 2, 4}), base::InputError);
}

TEST(Batch, WireFormIsTheIdentity) {
  const std::vector<Batch> parts = {sample(0, 5), sample(5, 4)};
  const Batch batch = Batch::concatenate(parts).slice(2, 8);
  const Batch back = parse(serialize(batch));
  ASSERT_EQ(back.rows(), 6);
  EXPECT_EQ(back.names(), batch.names());
  EXPECT_EQ(back.all(kUid), batch.all(kUid));
  EXPECT_EQ(back.all(kIds), batch.all(kIds));
  EXPECT_EQ(back.json(kExample, 5), batch.json(kExample, 5));
  EXPECT_EQ(back.column("ids").schema, batch.column("ids").schema);
  EXPECT_EQ(back.column("router").schema, batch.column("router").schema);
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(choices_in(back, i), choices(i + 2));
  EXPECT_EQ(serialize(back).header, serialize(batch).header);
}

TEST(Batch, NoRowsKeepTheirColumnsOnTheWire) {
  const Batch none = sample(0, 3).gather(std::vector<int64_t>());
  const Batch back = parse(serialize(none));
  EXPECT_EQ(back.rows(), 0);
  EXPECT_EQ(back.names(), none.names());
  EXPECT_EQ(back.column("router").schema, none.column("router").schema);
}

TEST(Batch, HostileWireIsRefused) {
  WireBatch wire = serialize(sample(1, 2));
  for (const std::vector<int64_t>& sizes : {std::vector<int64_t>{-2, -2}, {int64_t{1} << 62, 4}}) {
    nlohmann::json header = nlohmann::json::parse(wire.header);
    for (nlohmann::json& column : header.at("columns"))
      if (column.at("schema").at("name") == "router") column.at("schema").at("inner") = sizes;
    const WireBatch other{header.dump(), wire.frames};
    EXPECT_THROW(parse(other), base::RunError);
  }
  wire.frames[1].resize(3);
  EXPECT_THROW(parse(wire), base::Error);
  wire.frames.clear();
  EXPECT_THROW(parse(wire), base::RunError);
}

TEST(Batch, GatherReordersAndMergeChecksUids) {
  const Batch batch = sample(0, 4);
  const std::vector<int64_t> order = {3, 1, 2};
  const Batch picked = batch.gather(order);
  EXPECT_EQ(picked.all(kUid), (std::vector<int64_t>{3, 1, 2}));
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(choices_in(picked, i), choices(base::at(order, i)));
  Batch scores = picked.select_columns(std::vector<std::string>{"uid"});
  scores.set(kReward, {1.F, 2.F, 3.F});
  EXPECT_EQ(picked.merge(scores).get(kReward, 1), 2.F);
  EXPECT_THROW(batch.slice(0, 3).merge(scores), base::InputError);
}

TEST(Batch, MissingColumnsAreNamed) {
  const Batch batch = sample(0, 2);
  EXPECT_EQ(base::message_of([&] {
              batch.require(std::vector<std::string>{"uid", "reward"}, "node advantages");
            }),
            "[node advantages] expected a column \"reward\" in its input, got columns uid, ids, example, router; "
            "try a node before it that makes \"reward\"");
  EXPECT_THROW((void)batch.get(kReward, 0), base::InputError);
  EXPECT_THROW((void)batch.get(Key<float>{"uid"}, 0), base::InputError);
}

TEST(Uid, DependsOnEveryCoordinate) {
  const int64_t uid = make_uid("rollout", "train", 1, 2, 3, 4);
  EXPECT_EQ(uid, make_uid("rollout", "train", 1, 2, 3, 4));
  EXPECT_NE(uid, make_uid("rollout", "train", 1, 2, 4, 3));
  EXPECT_NE(uid, make_uid("rollout", "eval", 1, 2, 3, 4));
  EXPECT_NE(uid, make_uid("judge", "train", 1, 2, 3, 4));
  EXPECT_NE(uid, make_uid("rollout", "train", 0, 2, 3, 4));
  EXPECT_NE(uid, make_uid("rollout", "train", 1, 0, 3, 4));
  EXPECT_NE(uid, make_uid("rollout", "train", 1, 2, 0, 4));
  EXPECT_NE(uid, make_uid("rollout", "train", 1, 2, 3, 0));
}

}  // namespace
}  // namespace collimate::batch

#include "collimate/base/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/temporary_directory.h"
#include "tests/support/fault_control.h"

namespace collimate::base {
namespace {

class Metrics : public ::testing::Test {
 protected:
  void TearDown() override { limit_disk_for_tests(std::nullopt); }
  static MetricsRecord record(int64_t step) {
    MetricsRecord out{step, 0.5 * static_cast<double>(step), {}};
    out.set("actor/pg_loss", 0.1 * static_cast<double>(step));
    return out;
  }
  std::string text() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  std::vector<int64_t> steps() const {
    std::vector<int64_t> out;
    for (const auto& entry : read_metrics(path_)) out.push_back(entry.step);
    return out;
  }

  const TemporaryDirectory directory_;
  const std::filesystem::path path_ = directory_.path("metrics.jsonl");
};

TEST_F(Metrics, LineHasStepAndTimeFirstThenNamesInOrder) {
  MetricsRecord line{3, 1.5, {}};
  line.set("z", 1);
  line.set("a", 0.25);
  line.set("z", 3);
  line.set("new", 4);
  EXPECT_EQ(to_json_line(line), "{\"step\":3,\"time_seconds\":1.5,\"z\":3.0,\"a\":0.25,\"new\":4.0}\n");
}

TEST_F(Metrics, NonfiniteValuesAreNeverDropped) {
  MetricsRecord line{1, 0, {}};
  line.set("loss", NAN);
  line.set("ok", 1);
  line.set("high", INFINITY);
  line.set("low", -INFINITY);
  const std::string text = to_json_line(line);
  EXPECT_EQ(text,
            "{\"step\":1,\"time_seconds\":0.0,\"loss\":null,\"ok\":1.0,\"high\":null,\"low\":null,"
            "\"nonfinite\":[\"loss=nan\",\"high=inf\",\"low=-inf\"]}\n");
  const MetricsRecord back = parse_metrics_line(text);
  EXPECT_TRUE(std::isnan(*back.find("loss")));
  EXPECT_EQ(*back.find("high"), INFINITY);
  EXPECT_EQ(*back.find("low"), -INFINITY);
  EXPECT_EQ(back.values.size(), 4u);
}

TEST_F(Metrics, ValuesReadBackBitForBit) {
  MetricsRecord line{1, 0.1 + 0.2, {}};
  line.set("x", 1.0 / 3);
  line.set("tiny", 5e-324);
  const MetricsRecord back = parse_metrics_line(to_json_line(line));
  EXPECT_EQ(back.values, line.values);
  EXPECT_EQ(back.time_seconds, line.time_seconds);
}

TEST_F(Metrics, ResumeKeepsEveryStepOnce) {
  {
    MetricsWriter writer(path_, -1);
    for (int step = 0; step < 6; ++step) writer.append(record(step));
    writer.sync();
  }
  const std::string whole = text();
  {
    MetricsWriter writer(path_, 3);
    for (int step = 4; step < 6; ++step) writer.append(record(step));
  }
  EXPECT_EQ(text(), whole);
}

TEST_F(Metrics, TornLastLineIsCutOff) {
  {
    MetricsWriter writer(path_, -1);
    writer.append(record(1));
  }
  std::ofstream(path_, std::ios::app) << "{\"step\":2,\"time_sec";
  EXPECT_EQ(steps(), std::vector<int64_t>{1});
  MetricsWriter writer(path_, 5);
  writer.append(record(2));
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 2}));
}

TEST_F(Metrics, FullDiskLeavesWholeLines) {
  MetricsWriter writer(path_, -1);
  writer.append(record(1));
  limit_disk_for_tests(10);
  EXPECT_EQ(message_of<RunError>([&] { writer.append(record(2)); }),
            "[" + path_.string() + "] expected to append a record, got No space left on device");
  limit_disk_for_tests(std::nullopt);
  writer.append(record(3));
  EXPECT_EQ(steps(), (std::vector<int64_t>{1, 3}));
}

TEST_F(Metrics, AnotherFileIsRefused) {
  std::ofstream(path_) << "hello\n";
  EXPECT_THROW(MetricsWriter(path_, 3), InputError);
  EXPECT_THROW(read_metrics(path_.string() + ".absent"), InputError);
  for (const char* broken : {"{\"step\":", "[]", "{\"step\":2,\"nonfinite\":[1]}", "{\"step\":2,\"nonfinite\":1}"}) {
    std::ofstream(path_) << to_json_line(record(1)) << broken << "\n" << to_json_line(record(2));
    try {
      read_metrics(path_);
      ADD_FAILURE() << broken;
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with("[" + path_.string() + ":2] expected ")) << error.what();
    }
  }
}

}  // namespace
}  // namespace collimate::base

#include "collimate/base/span.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

namespace collimate::base {
namespace {

TEST(Span, ChromeTraceHasWorkersThreadsAndMicroseconds) {
  SpanRecorder recorder;
  recorder.name_worker(1, "policy \"0\"");
  recorder.record("generate", 1, 7, 2000, 5500);
  std::thread([&] { recorder.record("reward", 2, 8, 0, 1000); }).join();
  const auto trace = nlohmann::json::parse(recorder.chrome_trace());
  const auto& events = trace["traceEvents"];
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0]["args"]["name"], "policy \"0\"");
  EXPECT_EQ(events[1]["name"], "generate");
  EXPECT_EQ(events[1]["ph"], "X");
  EXPECT_EQ(events[1]["pid"], 1);
  EXPECT_EQ(events[1]["ts"], 2.0);
  EXPECT_EQ(events[1]["dur"], 3.5);
  EXPECT_EQ(events[1]["args"]["iteration"], 7);
  EXPECT_NE(events[1]["tid"], events[2]["tid"]);
}

TEST(Span, EmptyTraceIsValid) {
  EXPECT_TRUE(nlohmann::json::parse(SpanRecorder().chrome_trace())["traceEvents"].empty());
}

TEST(Span, PastCapacityIsCounted) {
  SpanRecorder recorder(2);
  for (int i = 0; i < 5; ++i) recorder.record("x", 0, i, 0, 1);
  EXPECT_EQ(recorder.dropped(), 3u);
  const auto trace = nlohmann::json::parse(recorder.chrome_trace());
  EXPECT_EQ(trace["traceEvents"].size(), 2u);
  EXPECT_EQ(trace["otherData"]["dropped_spans"], 3);
}

TEST(Span, ThreadsRecordTogether) {
  SpanRecorder recorder;
  std::vector<std::thread> threads;
  for (int worker = 0; worker < 4; ++worker) {
    threads.emplace_back([&recorder, worker] {
      for (int i = 0; i < 500; ++i) recorder.record("work", worker, i, 2 * i, 2 * i + 1);
    });
  }
  for (auto& thread : threads) thread.join();
  const auto trace = nlohmann::json::parse(recorder.chrome_trace());
  int by_worker[4] = {};
  for (const auto& span : trace["traceEvents"]) {
    ++by_worker[span["pid"].get<int>()];
    EXPECT_EQ(span["dur"], 0.001);
  }
  for (const int count : by_worker) EXPECT_EQ(count, 500);
}

}  // namespace
}  // namespace collimate::base

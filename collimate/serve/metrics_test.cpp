#include "collimate/serve/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "collimate/serve/histogram.h"

namespace collimate::serve {
namespace {

using testing::HasSubstr;

// In Prometheus `le` means at most.
TEST(ServerMetrics, AnObservationAtABoundIsOfItsBucket) {
  const std::array<double, 2> bounds = {0.5, 1.0};
  Histogram histogram(bounds);
  histogram.observe(0.5, 2);
  histogram.observe(0.75);
  histogram.observe(1.0);
  histogram.observe(1.25);
  const std::string text = histogram.text("x", "help");
  EXPECT_NE(text.find("x_bucket{le=\"0.5\"} 2\nx_bucket{le=\"1\"} 4\nx_bucket{le=\"+Inf\"} 5\n"), std::string::npos)
      << text;
}

TEST(ServerMetrics, WritesPrometheusText) {
  ServerMetrics metrics;
  metrics.count_answer("/v1/completions", 200);
  metrics.count_answer("/v1/completions", 200);
  metrics.count_answer("other", 404);
  metrics.count_tokens(5, 7);
  metrics.count_gone();
  metrics.observe_first_token(0.03);
  metrics.observe_first_token(70);
  EngineStatus engine{.in_flight = 3, .finished = 2, .cancelled = 1};
  engine.service.steps = 9;
  engine.service.proposed_tokens = 12;
  engine.service.accepted_tokens = 11;
  const std::string text = metrics.text(engine, 4);
  for (const char* line :
       {"# TYPE collimate_http_responses_total counter\n",
        "collimate_http_responses_total{endpoint=\"/v1/completions\",status=\"200\"} 2\n",
        "collimate_http_responses_total{endpoint=\"other\",status=\"404\"} 1\n", "\ncollimate_http_connections 4\n",
        "\ncollimate_http_clients_gone_total 1\n", "\ncollimate_prompt_tokens_total 5\n",
        "\ncollimate_completion_tokens_total 7\n", "\ncollimate_completions_in_flight 3\n",
        "\ncollimate_completions_cancelled_total 1\n", "\ncollimate_engine_steps_total 9\n",
        "\ncollimate_engine_proposed_tokens_total 12\n", "\ncollimate_engine_accepted_tokens_total 11\n",
        "\ncollimate_engine_up 1\n", "collimate_time_to_first_token_seconds_bucket{le=\"0.025\"} 0\n",
        "collimate_time_to_first_token_seconds_bucket{le=\"0.05\"} 1\n",
        "collimate_time_to_first_token_seconds_bucket{le=\"60\"} 1\n",
        "collimate_time_to_first_token_seconds_bucket{le=\"+Inf\"} 2\n",
        "collimate_time_to_first_token_seconds_sum 70.03\n", "collimate_time_to_first_token_seconds_count 2\n"})
    EXPECT_THAT(text, HasSubstr(line));
  engine.broken = "gone";
  EXPECT_THAT(metrics.text(engine, 0), HasSubstr("\ncollimate_engine_up 0\n"));
}

TEST(ServerMetrics, SaysHowFullBatchAndCacheAre) {
  EngineStatus engine{.in_flight = 3};
  engine.expired = 5;
  engine.service.running = 1;
  engine.service.slots = 4;
  engine.service.queued_steps = 2;
  engine.service.queued_rows = 7;
  engine.service.blocks = 8;
  engine.service.blocks_used = 2;
  engine.service.cache_bytes = 4096;
  engine.between_tokens.observe(0.002, 3);
  const Gauge gauge{"collimate_int8_log_prob_error_mean", "nats", 0.25};
  const std::string text = ServerMetrics().text(engine, 4, {&gauge, 1});
  for (const char* line :
       {"\ncollimate_completions_expired_total 5\n", "\ncollimate_completions_running 1\n",
        "\ncollimate_completions_waiting 2\n", "\ncollimate_engine_slots 4\n",
        "\ncollimate_engine_utilisation_ratio 0.875\n", "\ncollimate_cache_blocks 8\n",
        "\ncollimate_cache_bytes 4096\n", "\ncollimate_cache_used_ratio 0.25\n",
        "# TYPE collimate_time_between_tokens_seconds histogram\n",
        "collimate_time_between_tokens_seconds_bucket{le=\"0.001\"} 0\n",
        "collimate_time_between_tokens_seconds_bucket{le=\"0.0025\"} 3\n",
        "collimate_time_between_tokens_seconds_count 3\n",
        "# TYPE collimate_int8_log_prob_error_mean gauge\ncollimate_int8_log_prob_error_mean 0.25\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

}  // namespace
}  // namespace collimate::serve

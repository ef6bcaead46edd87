#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "collimate/base/memory_state.h"
#include "collimate/generate/service.h"
#include "tests/support/base/error_of.h"
#include "tests/support/generate/tiny_service.h"

namespace collimate::generate {
namespace {

using namespace testing_support;  // NOLINT: test only
using testing::HasSubstr;
using Json = nlohmann::json;

constexpr const char* kRequests = "service.requests";

// Two requests, 100 and 101, of 5 prompt tokens each, saved after three draws. The second was cancelled, and nothing
// was taken. It is the first of the saved requests, as it has ended.
class DamagedState : public testing::Test {
 protected:
  DamagedState() {
    options_.max_sequence_tokens = 20;
    std::vector<Request> requests;
    for (const int64_t uid : {100, 101})
      requests.push_back({.uid = uid,
                          .prompt_uid = uid,
                          .prompt = {3, 4, 5, 6, static_cast<int32_t>(uid - 93)},
                          .params = {.max_tokens = 12, .ignore_eos = true}});
    Service service(tiny_.model, options_);
    service.submit(to_batch(requests));
    for (int step = 0; step < 3; ++step) service.step();
    const int64_t second = 101;
    service.cancel({&second, 1});
    service.save(state_);
  }

  // Loads the state into a service that has a request of its own. Returns the message of a refusal, after which that
  // request must be as it was, or "".
  std::string load(base::MemoryState& state) {
    Service service(tiny_.model, options_);
    const Request own{.uid = 5, .prompt_uid = 5, .prompt = {9}, .params = {.max_tokens = 2, .ignore_eos = true}};
    service.submit(to_batch({&own, 1}));
    const std::string message = base::message_of([&] { service.load(state); });
    Results results;
    drain(service, results);
    if (!message.empty()) {
      EXPECT_EQ(results, run_all(tiny_.model, {&own, 1}, options_));
    }
    return message;
  }
  std::string refusal(const std::function<void(Json&)>& damage) {
    base::MemoryState state = state_;
    Json json = state.json(kRequests);
    damage(json);
    state.json(kRequests, json);
    return load(state);
  }
  // Damages one member of the request that still runs.
  std::string refusal(const char* member, const Json& value) {
    return refusal([&](Json& json) { json["requests"][1][member] = value; });
  }

  TinyModel tiny_;
  ServiceOptions options_;
  base::MemoryState state_;
};

TEST_F(DamagedState, IsLoadedWithoutDamage) {
  EXPECT_EQ(refusal([](Json&) {}), "");
}

TEST_F(DamagedState, NumbersBeyondASequenceAreRefused) {
  EXPECT_EQ(refusal("uid", 101),
            "[generate.load] expected each request once, got uid 101 twice; try another checkpoint, as this one is "
            "damaged");
  for (const int64_t prompt : {int64_t{9}, int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()})
    EXPECT_THAT(refusal("prompt_tokens", prompt), HasSubstr(fmt::format("got {} of 8 tokens", prompt)));
  EXPECT_THAT(refusal("length", -1), HasSubstr("got 5 of -1 tokens"));
  EXPECT_THAT(refusal("length", 20), HasSubstr("expected 20 more values of service.ids, got 8"));
  EXPECT_THAT(refusal("length", std::numeric_limits<int64_t>::max()), HasSubstr("more values of service.ids, got 8"));
  EXPECT_THAT(refusal("routed", -1), HasSubstr("-1 more values of service.routed_experts"));
  EXPECT_THAT(refusal("emitted", 4), HasSubstr("expected 0 to 3 tokens taken, got 4"));
  EXPECT_THAT(refusal("emitted", -1), HasSubstr("got -1"));
  EXPECT_THAT(refusal("emitted", 1e300), HasSubstr("a whole number as emitted, got 1e+300"));
  EXPECT_THAT(refusal("finish", 7), HasSubstr("a reason to end, got 7"));
  base::MemoryState state = state_;
  state.bytes("service.log_probs", std::vector<std::byte>(5 * sizeof(float)));
  EXPECT_THAT(load(state), HasSubstr("expected 3 more values of service.log_probs, got 2"));
}

// A request that runs has room for another token; one that has ended may have all of them.
TEST_F(DamagedState, TokensBeyondTheMaximumAreRefused) {
  const auto limited = [&](int64_t tokens) {
    return refusal([&](Json& json) { json["requests"][1]["sampling"]["max_tokens"] = tokens; });
  };
  EXPECT_EQ(limited(3),
            "[generate.load] expected at most 7 tokens in request 100, got 8; try max_sequence_tokens as it was, or "
            "another checkpoint");
  EXPECT_EQ(limited(4), "");
  EXPECT_EQ(refusal([](Json& json) { json["requests"][0]["sampling"]["max_tokens"] = 3; }), "");
  EXPECT_THAT(refusal([](Json& json) { json["requests"][0]["sampling"]["max_tokens"] = 2; }),
              HasSubstr("at most 7 tokens in request 101, got 8"));
  options_.max_sequence_tokens = 8;
  EXPECT_THAT(refusal([](Json&) {}), HasSubstr("at most 7 tokens in request 100, got 8"));
  options_.max_sequence_tokens = 9;
  EXPECT_EQ(refusal([](Json&) {}), "");
}

TEST_F(DamagedState, NewsOfOtherRequestsAreRefused) {
  EXPECT_THAT(refusal([](Json& json) { json["changed"] = Json::array({100}); }), HasSubstr("got none of uid 101"));
  EXPECT_THAT(refusal([](Json& json) {
                json["changed"] = Json::array({100, 101, 7});
              }),
              HasSubstr("got some of uid 7"));
  EXPECT_EQ(refusal([](Json& json) { json["changed"] = Json::array({101}); }), "");
}

TEST_F(DamagedState, WhatIsMissingOrOfAnotherKindIsRefused) {
  for (const char* member : {"requests", "changed", "paused", "version", "seed", "stats"}) {
    EXPECT_THAT(refusal([&](Json& json) { json.erase(member); }), HasSubstr("expected what a service saves")) << member;
    EXPECT_THAT(refusal([&](Json& json) { json[member] = "text"; }), HasSubstr("[generate.load] expected")) << member;
  }
  EXPECT_THAT(refusal([](Json& json) { json["stats"]["steps"] = 0.5; }), HasSubstr("a whole number as steps"));
  EXPECT_THAT(refusal("seconds_left", "soon"), HasSubstr("expected what a service saves"));
}

}  // namespace
}  // namespace collimate::generate

#include "collimate/report/chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cctype>
#include <map>
#include <regex>

#include "collimate/base/ticks.h"
#include "collimate/report/phases.h"
#include "collimate/report/sections.h"

namespace collimate::report {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::SizeIs;

constexpr double kRounding = 0.101;  // positions are written with one decimal

double attribute(const std::string& element, const std::string& name) {
  std::smatch found;
  if (!std::regex_search(element, found, std::regex(" " + name + "=\"([^\"]+)\""))) return -1;
  return std::stod(found[1]);
}

// Every start tag of the name, attributes included, with the text behind it.
std::vector<std::pair<std::string, std::string>> elements(const std::string& picture, const std::string& name) {
  const std::regex pattern("<" + name + "( [^>]*)>([^<]*)");
  std::vector<std::pair<std::string, std::string>> out;
  for (std::sregex_iterator at(picture.begin(), picture.end(), pattern), end; at != end; ++at)
    out.emplace_back((*at)[1], (*at)[2]);
  return out;
}

// A reader finds this written along the axes of a picture.
struct Axes {
  std::string x_name, y_name;
  std::map<std::string, double> x_ticks, y_ticks;  // label → position
};

Axes axes_of(const std::string& picture) {
  Axes axes;
  for (const auto& [attributes, text] : elements(picture, "text")) {
    if (attributes.find("class=\"unit\"") != std::string::npos) {
      axes.y_name = text;
    } else if (attributes.find(R"(text-anchor="end")") != std::string::npos) {
      axes.y_ticks[text] = attribute(attributes, "y") - 4;  // half a letter below the tick
    } else if (!text.empty() && (std::isdigit(static_cast<unsigned char>(text[0])) != 0 || text[0] == '-')) {
      axes.x_ticks[text] = attribute(attributes, "x");
    } else {
      axes.x_name = text;
    }
  }
  return axes;
}

TEST(Chart, PointsLieWhereTheAxesSay) {
  const std::vector<std::string> steps = {"1", "6", "11"};
  const struct {
    Scale scale;
    std::vector<double> values;
    std::vector<std::string> labels;
  } cases[] = {{Scale::kLinear, {20, 0, 100}, {"20", "0", "100"}},
               {Scale::kPercent, {0.2, 0, 0.6}, {"20 %", "0 %", "60 %"}},
               {Scale::kLog, {1e-6, 1e-8, 1e-2}, {"1e-06", "1e-08", "1e-02"}}};
  for (const auto& [scale, values, labels] : cases) {
    const std::string picture = draw_chart({"Title", "tokens & more", scale, {{"mean", {{1, 6, 11}, values}}}});
    const Axes axes = axes_of(picture);
    EXPECT_EQ(axes.x_name, "iteration");
    EXPECT_EQ(axes.y_name, "tokens &amp; more");
    const auto points = elements(picture, "circle");
    ASSERT_EQ(points.size(), 3U);
    for (size_t i = 0; i < 3; ++i) {
      ASSERT_THAT(axes.x_ticks, Contains(Key(steps[i])));
      ASSERT_THAT(axes.y_ticks, Contains(Key(labels[i])));
      EXPECT_NEAR(attribute(points[i].first, "cx"), axes.x_ticks.at(steps[i]), kRounding) << steps[i];
      EXPECT_NEAR(attribute(points[i].first, "cy"), axes.y_ticks.at(labels[i]), kRounding) << labels[i];
    }
    EXPECT_EQ(elements(picture, R"(line class="grid")").size(), axes.y_ticks.size());  // a grid line at each tick
  }
}

// A metric of each chart, with the unit of its axis where it has one; "%" is written at the ticks.
struct Drawn {
  const char* metric;
  const char* unit;
};
constexpr Drawn kDrawn[] = {{"val/accuracy", "%"},
                            {"val/loss", "nats per token"},
                            {"critic/rewards/mean", ""},
                            {"val/reward/mean", ""},
                            {"rewards/accuracies", "%"},
                            {"rewards/margins", ""},
                            {"val/rewards/accuracies", "%"},
                            {"val/rewards/margins", ""},
                            {"val/margin", ""},
                            {"actor/loss", ""},
                            {"actor/ppo_kl", "nats per token"},
                            {"response_length/mean", "tokens"},
                            {"actor/entropy", "nats per token"},
                            {"actor/grad_norm", ""},
                            {"actor/lr", ""},
                            {"mismatch/logprob_abs_max", "nats"},
                            {"actor/pg_clipfrac", "%"},
                            {"perf/throughput", "tokens per second"},
                            {"memory/peak_bytes", "MiB"}};

TEST(Curves, HaveAxesWithTicksAndUnits) {
  for (const auto& [metric, unit] : kDrawn) {
    RunData run;
    run.metrics[metric] = {{1, 2, 3}, {0.25, 0.5, 0.75}};
    const Curves curves = curves_of(run);
    ASSERT_THAT(curves.charts, SizeIs(1)) << metric;
    const Axes axes = axes_of(draw_chart(curves.charts[0]));
    EXPECT_EQ(axes.x_name, "iteration") << metric;
    EXPECT_THAT(axes.x_ticks, AllOf(Contains(Key("1")), Contains(Key("2")), Contains(Key("3")))) << metric;
    EXPECT_THAT(axes.y_name, Not(testing::IsEmpty())) << metric;
    EXPECT_GE(axes.y_ticks.size(), curves.charts[0].scale == Scale::kLog ? 2U : 3U) << metric;
    if (std::string(unit) == "%") {
      EXPECT_THAT(axes.y_ticks, testing::Each(Key(EndsWith(" %")))) << metric;
    } else {
      EXPECT_THAT(axes.y_name, EndsWith(unit)) << metric;
    }
  }
}

TEST(Curves, PeakMemoryIsInTheUnitOfItsAxis) {
  RunData run;
  run.metrics["memory/peak_bytes"] = {{1, 2, 3}, {2 << 20, 4 << 20, 6 << 20}};
  const std::string picture = draw_chart(curves_of(run).charts.at(0));
  const Axes axes = axes_of(picture);
  EXPECT_EQ(axes.y_name, "MiB");
  ASSERT_THAT(axes.y_ticks, Contains(Key("6")));
  EXPECT_NEAR(attribute(elements(picture, "circle").at(2).first, "cy"), axes.y_ticks.at("6"), kRounding);
}

TEST(Curves, PeakMemoryOfManyMebibytesIsInGibibytes) {
  RunData run;
  run.metrics["memory/peak_bytes"] = {{1, 2, 3}, {1LL << 30, 2LL << 30, 6LL << 30}};
  run.metrics["memory/peak_bytes/0"] = {{1, 2, 3}, {1LL << 30, 2LL << 30, 3LL << 30}};
  for (const Chart& chart : {curves_of(run).charts.at(0), curves_of(std::vector{run, run}).charts.at(0)}) {
    EXPECT_EQ(chart.unit, "GiB");
    EXPECT_THAT(chart.lines.at(0).series.y, testing::ElementsAre(1, 2, 6));
  }
  EXPECT_THAT(curves_of(run).charts.at(0).lines.at(1).series.y, testing::ElementsAre(1, 2, 3));
}

TEST(Phases, AreStackedInSecondsOverSteps) {
  RunData run;
  run.first_step = 1;
  run.last_step = 5;
  run.metrics["timing_s/step"] = {{1, 2, 3, 4, 5}, {2, 2, 2, 2, 2}};
  run.metrics["timing_s/gen"] = {{1, 2, 3, 4, 5}, {1.5, 1.5, 1.5, 1.5, 1.5}};
  const std::string picture = draw_phases(phase_table(run));
  const Axes axes = axes_of(picture);
  EXPECT_EQ(axes.x_name, "iteration");
  EXPECT_EQ(axes.y_name, "seconds");
  EXPECT_THAT(axes.x_ticks, ElementsAre(Key("1"), Key("2"), Key("3"), Key("4"), Key("5")));
  ASSERT_THAT(axes.y_ticks, ElementsAre(Key("0"), Key("0.5"), Key("1"), Key("1.5"), Key("2")));
  const auto bars = elements(picture, "rect");  // of a step: gen from 0 to 1.5, on it the rest up to 2
  ASSERT_EQ(bars.size(), 10U);
  EXPECT_NEAR(attribute(bars[0].first, "y"), axes.y_ticks.at("1.5"), kRounding);
  EXPECT_NEAR(attribute(bars[1].first, "y"), axes.y_ticks.at("2"), kRounding);
  EXPECT_NEAR(attribute(bars[8].first, "x") + attribute(bars[8].first, "width") / 2, axes.x_ticks.at("5"),
              2 * kRounding);
}

TEST(Phases, AnEvaluationIsNoPartOfAnIteration) {
  RunData run;
  run.first_step = 1;
  run.last_step = 2;
  run.seconds = 10;
  run.metrics["timing_s/step"] = {{1, 2}, {2, 2}};
  run.metrics["timing_s/gen"] = {{1, 2}, {1.5, 1.5}};
  run.metrics["timing_s/testing"] = {{2}, {4}};
  std::map<std::string, double> totals;
  for (const PhaseTimes& phase : phase_table(run).phases) totals[phase.name] = phase.total;
  ASSERT_EQ(totals.size(), 4U);
  EXPECT_EQ(totals.at("the rest of each iteration"), 1);
  EXPECT_EQ(totals.at("outside of the iterations: start, checkpoints, end"), 2);
}

TEST(Timeline, HasSecondsBelowAndWorkersBeside) {
  RunData run;
  run.trace = {{"generate", "device 0", 2, 6}, {"score", "device 1", 0, 8}};
  const std::string picture = draw_timeline(run);
  const Axes axes = axes_of(picture);
  EXPECT_EQ(axes.x_name, "seconds");
  EXPECT_THAT(axes.y_ticks, ElementsAre(Key("device 0"), Key("device 1")));
  ASSERT_THAT(axes.x_ticks, AllOf(Contains(Key("0")), Contains(Key("2")), Contains(Key("6"))));
  const auto blocks = elements(picture, "rect");
  ASSERT_EQ(blocks.size(), 2U);
  const double begin = attribute(blocks[0].first, "x");
  EXPECT_NEAR(begin, axes.x_ticks.at("2"), kRounding);
  EXPECT_NEAR(begin + attribute(blocks[0].first, "width"), axes.x_ticks.at("6"), 2 * kRounding);
}

TEST(Timeline, ALongNameIsCutBetweenCharacters) {
  RunData run;
  run.trace = {{"generate", "model ééééééééééééééééé device 0", 0, 1}};
  EXPECT_THAT(draw_timeline(run), HasSubstr(">model ééééééééé...<title>model ééééééééééééééééé device 0</title>"));
}

TEST(Chart, TicksAreRound) {
  EXPECT_THAT(base::ticks(0, 1, 5), ElementsAre(0, 0.2, 0.4, testing::DoubleEq(0.6), 0.8, 1));
  EXPECT_THAT(base::ticks(1, 20, 7), ElementsAre(2, 4, 6, 8, 10, 12, 14, 16, 18, 20));
  EXPECT_THAT(base::ticks(-3, 4, 5), ElementsAre(-3, -2, -1, 0, 1, 2, 3, 4));
  EXPECT_EQ(log_ticks(1e-9, 1e3).size(), 7u);
}

TEST(Chart, RunningMeanShrinksAtTheEnds) {
  EXPECT_THAT(running_mean({1, 2, 6, 3}, 3), ElementsAre(1.5, 3, testing::DoubleEq(11.0 / 3), 4.5));
}

TEST(Chart, DrawsWhatHasOnePointOrNone) {
  for (const Scale scale : {Scale::kLinear, Scale::kPercent, Scale::kLog}) {
    for (const double value : {0.0, -2.0, 3e-9, 1e12}) {
      const std::string one = draw_chart({"t", "u", scale, {{"a", {{5}, {value}}}, {"b", {}}}});
      EXPECT_THAT(one, Not(testing::AnyOf(HasSubstr("nan"), HasSubstr("inf,"), HasSubstr("inf\""))));
    }
  }
}

}  // namespace
}  // namespace collimate::report

#include "collimate/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <regex>

#include "collimate/base/error.h"
#include "collimate/report/phases.h"
#include "collimate/report/sections.h"
#include "tests/support/base/error_of.h"
#include "tests/support/base/temporary_directory.h"

namespace collimate::report {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

// A made-up run of 20 steps in a directory of its own.
class ReportTest : public testing::Test {
 protected:
  ReportTest() { fs::create_directory(run_ / "samples"); }

  void write(const fs::path& name, const std::string& text) { std::ofstream(run_ / name) << text; }

  void write_metrics() {
    std::string lines;
    for (int step = 1; step <= 20; ++step) {
      lines += fmt::format(
          R"({{"step":{0},"time_seconds":{1},"critic/rewards/mean":{2},"timing_s/step":2.0,"timing_s/gen":1.25,"timing_s/update_actor":0.5)",
          step, 2.0 * step, 0.25 + 0.0125 * step);
      if (step % 10 == 0) lines += fmt::format(R"(,"val/accuracy":{})", 0.04 * step);
      lines += "}\n";
    }
    write("metrics.jsonl", lines);
  }

  const base::TemporaryDirectory directory_;
  const fs::path run_ = directory_.path();
};

TEST_F(ReportTest, NamesWhatIsMissing) {
  EXPECT_EQ(base::message_of([&] { render_report(run_); }),
            "[report] expected a run's directory with metrics.jsonl, got " + run_.string() +
                "; try the --output directory of a `collimate train`");
  write_metrics();
  EXPECT_EQ(base::message_of([&] { render_report(run_ / "model"); }),
            "[report] expected a run's directory with metrics.jsonl, got " + (run_ / "model").string() + "; try " +
                run_.string() + ", which has it");
  EXPECT_THAT(render_report(run_), HasSubstr("not shown: summary.json, config.resolved.yaml, trace.json, samples/ ("));
}

TEST_F(ReportTest, WarningsStandFirst) {
  write_metrics();
  write("summary.json", R"({"warnings": ["rewards < 1 were equal"]})");
  EXPECT_THAT(render_report(run_), HasSubstr("<p class=\"warning\"><b>Warning:</b> rewards &lt; 1 were equal</p>"));
}

TEST_F(ReportTest, EachFurtherMeasureHasItsSamples) {
  write_metrics();
  write("samples/step-000001.jsonl", "{\"prompt\":\"trained on\",\"completion\":\"a\"}\n");
  fs::create_directory(run_ / "samples/questions");
  for (const std::string step : {"0", "9"})
    write("samples/questions/eval-00000" + step + ".jsonl",
          "{\"step\":" + step + ",\"prompt\":\"asked\",\"completion\":\"after " + step + "\",\"reward\":1}\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("<h2>Samples before and after</h2>"));
  EXPECT_THAT(page, HasSubstr("<h2>Samples before and after: questions</h2>"));
  EXPECT_THAT(page, HasSubstr("after 9"));
}

TEST_F(ReportTest, RowsLeftOutStandBesideThem) {
  write_metrics();
  write("summary.json",
        R"({"left_out": [{"data": "data.train", "rows": 2, "of": 9,
           "what": "left out (data.bad_rows: drop); the first: [a.jsonl:3] expected <text>"}]})");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("<b>Data:</b> data.train: 2 of 9 rows left out (data.bad_rows: drop); the first: "
                              "[a.jsonl:3] expected &lt;text&gt;</p>"));
}

TEST_F(ReportTest, ShowsCurvesTilesAndPhases) {
  write_metrics();
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("<h3>Held-out accuracy</h3>"));
  EXPECT_THAT(page, HasSubstr("<b>40 → 80 %</b>"));
  EXPECT_THAT(page, HasSubstr("<b>0.269 → 0.494</b>"));  // means of 2: 0.25 + 0.0125 * 1.5, 0.25 + 0.0125 * 19.5
  EXPECT_THAT(page, HasSubstr("<td class=\"n\">62.5 %</td>"));
  EXPECT_THAT(page, Not(HasSubstr("<h3>KL divergence</h3>")));
}

TEST_F(ReportTest, TheTitleSaysWhatWasTrainedOnWhatAndHowToTryIt) {
  write_metrics();
  write("config.resolved.yaml",
        "recipe: sft\nmodels: {policy: {path: ../shared/stories/hf-llama}}\n"
        "data: {train: [data/a.jsonl, {path: b.jsonl, weight: 2}]}\n");
  write("summary.json", R"({"recipe": "sft", "seconds": 41.5, "ended": "2026-11-24T19:36:22Z", "generates": true})");
  EXPECT_THAT(render_report(run_), Not(HasSubstr("To try the model")));  // there is none
  fs::create_directories(run_ / "model");
  write("model/config.json", "{}");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("<h1>SFT of stories/hf-llama on a.jsonl and b.jsonl</h1>"));
  EXPECT_THAT(page, HasSubstr("<title>SFT of stories/hf-llama on a.jsonl and b.jsonl - "));
  EXPECT_THAT(page, HasSubstr(", ended 2026-11-24 19:36 UTC · iterations 1 to 20 · 41.5 s</p>"));
  EXPECT_THAT(page, HasSubstr("<code>collimate chat " + run_.string() + "/model</code>"));
}

TEST_F(ReportTest, ARewardModelIsTriedByEvaluatingIt) {
  write_metrics();
  write("summary.json", R"({"recipe": "reward", "generates": false})");
  fs::create_directories(run_ / "model");
  write("model/config.json", "{}");
  EXPECT_THAT(render_report(run_),
              HasSubstr("<code>collimate eval " + run_.string() + "/model --data PAIRS.jsonl</code>"));
}

TEST_F(ReportTest, TilesHaveTheLossOfTheWholeRun) {
  std::string lines;
  for (int step = 1; step <= 30; ++step)
    lines += fmt::format("{{\"step\":{0},\"time_seconds\":{0},\"actor/loss\":{1}}}\n", step, 3.0 - 0.1 * step);
  write("metrics.jsonl", lines);
  EXPECT_THAT(render_report(run_),
              HasSubstr("<b>2.8 → 0.1</b><span>loss, means of the first and the last 3 of 30 iterations</span>"));
}

// Rewards of 0 and 1 are the accuracy; a constant rate is a number.
TEST_F(ReportTest, DrawsOneCurveForEachFact) {
  std::string lines;
  for (int step = 1; step <= 3; ++step)
    lines += fmt::format(
        "{{\"step\":{0},\"time_seconds\":{0},\"val/accuracy\":0.{0},\"val/reward/mean\":0.{0},\"actor/lr\":1e-6,"
        "\"actor/loss\":{0},\"actor/pg_loss\":{0},\"critic/lr\":{0}e-6}}\n",
        step);
  write("metrics.jsonl", lines);
  const std::string page = render_report(run_);
  EXPECT_THAT(page, Not(HasSubstr("<h3>Held-out reward</h3>")));
  EXPECT_THAT(page, HasSubstr("not drawn: Held-out reward (reward) is Held-out accuracy (accuracy), "
                              "Loss (policy gradient alone) is Loss (trained model)."));
  EXPECT_THAT(page, HasSubstr("The same in every iteration, so not drawn: Learning rate (trained model) 1e-06."));
  EXPECT_THAT(page, HasSubstr("<h3>Learning rate</h3>"));  // the value model's
  EXPECT_THAT(page, Not(HasSubstr("held-out reward</span>")));
}

// Steps, with the evaluations in between, and the rest add up to the whole time that the terminal says.
TEST_F(ReportTest, PhasesAddUpToTheTimeOfTheRun) {
  write("metrics.jsonl",
        "{\"step\":0,\"time_seconds\":0,\"timing_s/testing\":1}\n"
        "{\"step\":1,\"time_seconds\":5,\"timing_s/step\":4,\"timing_s/update_actor\":3,\"timing_s/testing\":1}\n");
  write("summary.json", R"({"seconds": 8})");
  const std::string page = render_report(run_);
  for (const char* row : {"training</td><td class=\"n\">3 s</td>", "held-out evaluation</td><td class=\"n\">2 s</td>",
                          "the rest of each iteration</td><td class=\"n\">1 s</td>",
                          "outside of the iterations: start, checkpoints, end</td><td class=\"n\">2 s</td>",
                          "<th>whole time</th><th class=\"n\">8 s</th>", "<b>8 s</b><span>whole time</span>"})
    EXPECT_THAT(page, HasSubstr(row));
}

TEST_F(ReportTest, RowsOfDataShowWhatTheModelMakesOfThem) {
  write_metrics();
  write("samples/eval-000000.jsonl", R"({"step":0,"prompt":"p","measure":"loss","target":"the answer","value":2.5})"
                                     "\n");
  write("samples/eval-000020.jsonl", R"({"step":20,"prompt":"p","measure":"loss","target":"the answer","value":0.5})"
                                     "\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("<span class=\"chip up\">loss per token 2.5 → 0.5</span>"));
  EXPECT_THAT(page, HasSubstr("Held-out rows in the order of the file"));
}

TEST_F(ReportTest, RowsOfDataShowTheModelsOwnAnswers) {
  write_metrics();
  write("samples/eval-000000.jsonl",
        R"({"prompt":"p","measure":"loss","target":"right","value":2.5,"model_answer":"wrong"})"
        "\n"
        R"({"prompt":"q","measure":"loss","target":"also right","value":2.5,"model_answer":""})"
        "\n");
  write("samples/eval-000020.jsonl",
        R"({"prompt":"p","measure":"loss","target":"right","value":0.5,"model_answer":"better"})"
        "\n"
        R"({"prompt":"q","measure":"loss","target":"also right","value":0.5,"model_answer":"new"})"
        "\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page,
              testing::ContainsRegex("the data&#39;s answer</span>.*>right<.*model&#39;s answer before, iteration 0<"
                                     ".*>wrong<.*model&#39;s answer after, iteration 20<.*>better<"));
  EXPECT_THAT(page, HasSubstr(">(nothing)<"));
}

TEST_F(ReportTest, EveryHeldOutNumberOfSeveralEvaluationsIsACurve) {
  write(
      "metrics.jsonl",
      R"({"step":0,"time_seconds":0,"val/loss":2,"val/perplexity":7.4,"val/pass@2":0.1,"val/pass@4":0.2,"val/once":1})"
      "\n"
      R"({"step":4,"time_seconds":4,"val/loss":1,"val/perplexity":2.7,"val/pass@2":0.3,"val/pass@4":0.5})"
      "\n");
  const std::string page = render_report(run_);
  for (const char* title : {"Held-out loss", "Held-out perplexity", "Held-out pass"})
    EXPECT_THAT(page, HasSubstr(std::string("<h3>") + title)) << title;
  EXPECT_THAT(page, HasSubstr("pass@4"));
  EXPECT_THAT(page, Not(HasSubstr("<h3>Held-out once")));
}

TEST_F(ReportTest, PairsShowBothSides) {
  write_metrics();
  write(
      "samples/eval-000000.jsonl",
      R"({"prompt":"p","measure":"implicit_reward","chosen":"good","chosen_value":0,"rejected":"bad","rejected_value":0})"
      "\n");
  write(
      "samples/eval-000020.jsonl",
      R"({"prompt":"p","measure":"implicit_reward","chosen":"good","chosen_value":3,"rejected":"bad","rejected_value":-2})"
      "\n");
  EXPECT_THAT(render_report(run_),
              testing::ContainsRegex("chosen, in the data</span>.*implicit reward 0 → 3</span>.*good.*rejected, in the "
                                     "data</span>.* 0 → -2</span>.*bad"));
}

// The held-out measures of DPO's implicit reward stand beside the training's, under TRL's names.
TEST_F(ReportTest, HeldOutPairsOfDpoAreBesideTheTrainings) {
  std::string lines;
  for (int step = 0; step < 3; ++step)
    lines += fmt::format(R"({{"step":{0},"time_seconds":{0},"rewards/accuracies":0.6,"rewards/margins":0.1,)"
                         R"("val/rewards/accuracies":0.{0},"val/rewards/margins":0.{0}}})"
                         "\n",
                         step + 5);
  write("metrics.jsonl", lines);
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("<b>50 → 70 %</b>"));
  EXPECT_THAT(page, HasSubstr("held-out preferences in order"));
  EXPECT_THAT(page, HasSubstr("<h3>Preference accuracy</h3>"));
  EXPECT_THAT(page, testing::Not(HasSubstr("Held-out accuracy")));
}

TEST_F(ReportTest, KnowsTrlsNames) {
  write("metrics.jsonl", "{\"step\":1,\"time_seconds\":1,\"kl\":0.5,\"reward\":2}\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("<h3>KL divergence</h3>"));
  EXPECT_THAT(page, HasSubstr("mean reward, one iteration"));
}

TEST_F(ReportTest, NamesWhatStayedZeroInsteadOfDrawingIt) {
  write("metrics.jsonl", "{\"step\":1,\"time_seconds\":1,\"actor/pg_loss\":3e-9,\"mismatch/logprob_abs_max\":0.0}\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page,
              HasSubstr("not drawn: Loss (policy gradient alone), Log-probs: generation against training (largest)."));
  EXPECT_THAT(page, Not(HasSubstr("<h3>Loss</h3>")));
}

TEST_F(ReportTest, DrawsFailedRewardsWhereThereWereAny) {
  write("metrics.jsonl",
        "{\"step\":1,\"time_seconds\":1,\"reward/errors\":0,\"val/reward/errors\":0}\n"
        "{\"step\":2,\"time_seconds\":2,\"reward/errors\":3,\"val/reward/errors\":0}\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("<h3>Failed rewards</h3>"));
  EXPECT_THAT(page, HasSubstr("not drawn: Failed rewards (held-out)."));
}

TEST_F(ReportTest, PrefersSamplesOfHeldOutPrompts) {
  write_metrics();
  write("samples/step-000001.jsonl", "{\"prompt\":\"trained on\",\"completion\":\"a\"}\n");
  write("samples/eval-000000.jsonl", "{\"prompt\":\"held out\",\"completion\":\"b\"}\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("held out"));
  EXPECT_THAT(page, Not(HasSubstr("trained on")));
}

TEST_F(ReportTest, IsSelfContainedAndEscapes) {
  write_metrics();
  write("config.resolved.yaml", "recipe: <b>grpo</b> & co\n");
  write("summary.json", R"({"versions":{"collimate":"0.1.0 <x>"},"seed":7})");
  write("samples/step-000000.jsonl", R"({"prompt":"<script>alert(1)</script>","completion":"a\u0001b","reward":0.5})"
                                     "\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_THAT(page, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(page, HasSubstr("a&#9217;b"));
  EXPECT_THAT(page, HasSubstr("recipe: &lt;b&gt;grpo&lt;/b&gt; &amp; co"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">versions: collimate</th><td>0.1.0 &lt;x&gt;</td>"));
  EXPECT_FALSE(std::regex_search(page, std::regex(R"((src|href)\s*=|@import|url\(|https?://)")));
}

TEST_F(ReportTest, ShowsMemoryByItemAndNotAmongTheFacts) {
  write_metrics();
  write("summary.json", R"({"seed": 7, "phase_seconds": {"gen": 3}, "peak_memory_bytes": 1048576,
    "memory": {"process_start_bytes": 104857600, "process_peak_bytes": 209715200, "workers": [
      {"worker": 0, "planned_bytes": 3145728, "peak_bytes": 2097152, "items": [
        {"item": "policy/<master>", "planned_bytes": 2097152, "peak_bytes": 1572864},
        {"item": "policy/gradient", "planned_bytes": 2097152, "peak_bytes": 2097152},
        {"item": "rows", "planned_bytes": 0, "peak_bytes": 131072},
        {"item": "tiny", "planned_bytes": 3, "peak_bytes": 3}]},
      {"worker": 1, "planned_bytes": 0, "peak_bytes": 0, "items": []}]}})");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("took 100 MiB at the start and 200 MiB at most"));
  EXPECT_THAT(page, HasSubstr("<td>policy: &lt;master&gt;</td><td class=\"n\">2 MiB</td><td class=\"n\">1.5 MiB</td>"));
  EXPECT_THAT(page, HasSubstr("<td>policy: gradients</td>"));
  EXPECT_THAT(page, HasSubstr("<td>rows</td><td class=\"n\">–</td>"));
  EXPECT_THAT(page, Not(HasSubstr("tiny")));
  EXPECT_THAT(page, Not(HasSubstr("worker 1")));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">peak memory</th><td>1 MiB</td>"));
  EXPECT_THAT(page, Not(HasSubstr("phase_seconds")));
}

TEST_F(ReportTest, ARunThatEndsBelowItsBestSaysSo) {
  write("metrics.jsonl",
        "{\"step\":1,\"time_seconds\":1,\"val/accuracy\":0.1,\"val/loss\":2}\n"
        "{\"step\":2,\"time_seconds\":2,\"val/accuracy\":0.6,\"val/loss\":3}\n"
        "{\"step\":3,\"time_seconds\":3,\"val/accuracy\":0.2,\"val/loss\":1}\n");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("held-out accuracy, best 60 % at iteration 2</span>"));
  EXPECT_THAT(page, HasSubstr("held-out loss</span>"));
}

TEST_F(ReportTest, PairsSamplesByPrompt) {
  write_metrics();
  write("samples/step-000000.jsonl",
        "{\"prompt\":\"p1\",\"completion\":\"old1\",\"reward\":0,\"expected\":\"e1\"}\n"
        "{\"prompt\":\"p2\",\"completion\":\"old2\",\"reward\":0}\n");
  write("samples/step-000020.jsonl",
        "{\"prompt\":\"p2\",\"completion\":\"new2\",\"reward\":1}\n"
        "{\"prompt\":\"p2\",\"completion\":\"second of p2\",\"reward\":1}\n"
        "{\"prompt\":\"p1\",\"completion\":\"new1\",\"reward\":0.25,\"expected\":\"e1\"}\n"
        "{\"prompt\":\"torn");
  const std::string page = render_report(run_);
  EXPECT_THAT(page, testing::ContainsRegex("p2.*old2.*reward 1.*new2.*p1.*e1.*old1.*reward 0.25.*new1"));
  EXPECT_THAT(page, Not(HasSubstr("second of p2")));
  EXPECT_THAT(page, HasSubstr("after, iteration 20"));
  EXPECT_THAT(page, HasSubstr("<p class=\"soft\">Prompts of the first and of the last file of training samples, in the "
                              "order of the last.</p>"));
  EXPECT_THAT(page, Not(HasSubstr("evaluation")));
}

TEST_F(ReportTest, SaysWhichSamplesAreOfEvaluations) {
  write_metrics();
  for (const char* file : {"samples/eval-000000.jsonl", "samples/eval-000020.jsonl"})
    write(file, "{\"prompt\":\"p1\",\"completion\":\"c\",\"reward\":0}\n");
  EXPECT_THAT(render_report(run_), HasSubstr("<p class=\"soft\">The same prompts at the first and the last evaluation, "
                                             "in the order of the file.</p>"));
}

TEST_F(ReportTest, NamesTheBadLineOfSamples) {
  write_metrics();
  write("samples/step-000001.jsonl", "{\"prompt\":\"a\"}\n{broken\n");
  EXPECT_THROW(
      try { render_report(run_); } catch (const base::InputError& error) {
        EXPECT_THAT(error.what(), HasSubstr("step-000001.jsonl:2] expected well-formed JSON"));
        throw;
      },
      base::InputError);
}

TEST_F(ReportTest, ShowsOneWholeIterationOfTheTrace) {
  write_metrics();
  write("trace.json", R"({"traceEvents":[
    {"ph":"M","name":"process_name","pid":0,"args":{"name":"policy device 0"}},
    {"ph":"X","name":"first","pid":0,"tid":0,"ts":0,"dur":1e6,"args":{"iteration":1}},
    {"ph":"X","name":"generate","pid":0,"tid":0,"ts":2e6,"dur":3e6,"args":{"iteration":2}},
    {"ph":"X","name":"score","pid":1,"tid":1,"ts":3e6,"dur":1e6,"args":{"iteration":2}},
    {"ph":"X","name":"cut short","pid":0,"tid":0,"ts":6e6,"dur":1e6,"args":{"iteration":3}}]})");
  const RunData run = read_run(run_);
  ASSERT_EQ(run.trace.size(), 2u);
  EXPECT_EQ(run.trace_iteration, 2);
  EXPECT_EQ(run.trace[0].lane, "policy device 0");
  EXPECT_DOUBLE_EQ(run.trace[0].begin_seconds, 0);
  EXPECT_EQ(run.trace[1].lane, "worker 1");
  EXPECT_DOUBLE_EQ(run.trace[1].begin_seconds, 1);
  EXPECT_THAT(draw_timeline(run), HasSubstr("What ran when in iteration 2"));
}

TEST_F(ReportTest, ALineThatCannotBeReadIsNamedAndTheOthersAreShown) {
  write_metrics();
  const std::string whole = render_report(run_);
  std::ofstream(run_ / "metrics.jsonl", std::ios::app) << "{\"step\": oops}\n";
  const std::string page = render_report(run_);
  EXPECT_THAT(page, HasSubstr("a line of metrics.jsonl that cannot be read: ["));
  EXPECT_THAT(page, HasSubstr(whole.substr(0, whole.find("<h2>Curves"))));
}

}  // namespace
}  // namespace collimate::report

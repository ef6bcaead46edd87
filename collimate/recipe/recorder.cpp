#include "collimate/recipe/recorder.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "collimate/base/deadline.h"
#include "collimate/base/log.h"
#include "collimate/batch/standard_keys.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/host/memory.h"
#include "collimate/recipe/records.h"

namespace collimate::recipe {
namespace {

// Returns a node's metric, as "timing_s/policy.generate", under the name of the node's phase, and other metrics as they
// are.
std::string phase_metric(const std::string& metric, const Plan& plan) {
  for (const std::string family : {"timing_s/", "memory/peak_bytes/"}) {
    if (!metric.starts_with(family)) continue;
    const auto found = plan.phases.find(metric.substr(family.size()));
    if (found != plan.phases.end()) return family + found->second;
  }
  return metric;
}

void copy_metrics(const nlohmann::ordered_json& metrics, const Plan& plan, base::MetricsRecord& record) {
  for (const auto& [name, value] : metrics.items())
    record.set(phase_metric(name, plan), value.is_number() ? value.get<double>() : std::nan(""));
}

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

constexpr const char *kRewardErrors = "reward/errors", *kTesting = "timing_s/testing";

// Logs one line where rewards failed: how many, and the first with its reason and what on_error made of it.
void warn_of_errors(const std::string& where, const flow::IterationResult& result) {
  const auto note = result.notes.find(kRewardErrors);
  if (note == result.notes.end()) return;
  base::log_warning("{}: failed rewards: {}; the first: {}", where, result.metrics.at(kRewardErrors).get<double>(),
                    note->second);
}

}  // namespace

Recorder::Recorder(const Config& config, const Plan& plan, const RunData& data, const RunDirectory& directory)
    : config_(config),
      plan_(plan),
      data_(data),
      directory_(directory),
      start_seconds_(base::now_seconds()),
      best_metric_(config, directory.metrics()) {
  if (!directory.ended())
    writer_.emplace(directory.metrics(), directory.checkpoint().empty() ? -1 : directory.completed());
}

bool Recorder::evaluates_after(int64_t iteration) const {
  if (!plan_.measures()) return false;
  const int64_t every = config_.run.evaluate_every;
  return iteration + 1 == config_.run.iterations || (every > 0 && (iteration + 1) % every == 0);
}

void Recorder::iteration(const flow::IterationResult& result) {
  base::MetricsRecord record;
  record.step = result.iteration + 1;
  record.time_seconds = seconds();
  warn_of_errors(fmt::format("iteration {}", record.step), result);
  const auto samples = result.batches.find(plan_.samples_node);
  if (samples != result.batches.end()) add_sample_metrics(samples->second, result.seconds, record);
  copy_metrics(result.metrics, plan_, record);
  if (const double* trained = record.find("train/tokens"); trained != nullptr && !record.find("perf/throughput"))
    record.set("perf/throughput", *trained / std::max(result.seconds, 1e-9));
  record.set("timing_s/step", result.seconds);
  record.set("memory/peak_bytes", static_cast<double>(host::peak_resident_bytes()));
  const int64_t every = config_.run.samples_every;
  const bool edge = result.iteration == 0 || record.step == config_.run.iterations;
  if (samples != result.batches.end() && (edge || (every > 0 && record.step % every == 0)))
    write_samples(samples->second, *data_.tokenizer, record.step, directory_.samples(record.step));
  if (evaluates_after(result.iteration)) {
    last_ = record;
    waiting_ = std::move(record);
  } else {
    write(std::move(record));
  }
}

bool Recorder::evaluation(const EvaluationPlan& plan, const flow::IterationResult& result) {
  if (plan.of_training) {
    const auto rows = result.batches.find(plan.graph.nodes.back().id);
    if (rows != result.batches.end()) write_rows(plan, result.iteration + 1, rows->second);
    return false;
  }
  if (!waiting_) waiting_.emplace().step = result.iteration + 1;
  add_evaluation(plan, result, *waiting_);
  if (&plan != &plan_.evaluations.back()) return false;
  if (first_evaluation_.is_null()) first_evaluation_ = values_;
  last_evaluation_ = std::exchange(values_, nlohmann::ordered_json::object());
  base::MetricsRecord record = std::move(*waiting_);
  waiting_.reset();
  watch_loss(record);
  write(std::move(record));
  return true;
}

// Adds what the evaluation says of the rows of its last node; nothing where on_error dropped them all.
void Recorder::add_evaluation(const EvaluationPlan& plan, const flow::IterationResult& result,
                              base::MetricsRecord& record) {
  const std::string where =
      fmt::format("iteration {}, held-out{}", record.step, plan.name.empty() ? "" : " " + plan.name);
  warn_of_errors(where, result);
  if (const auto errors = result.metrics.find(kRewardErrors); errors != result.metrics.end())
    record.set(plan.metric(kRewardErrors), errors->get<double>());
  const double* before = record.find(kTesting);
  record.set(kTesting, result.seconds + (before == nullptr ? 0 : *before));
  const auto rows = result.batches.find(plan.graph.nodes.back().id);
  if (rows == result.batches.end())
    return base::log_warning("{}: every sample was dropped: nothing is measured", where);
  add_measures(plan, rows->second, record);
  write_rows(plan, record.step, rows->second);
}

void Recorder::add_measures(const EvaluationPlan& plan, const Batch& rows, base::MetricsRecord& record) {
  for (const Measure& measure : plan.measures(rows)) {
    const double value = estimate(measure).value;
    record.set(plan.metric(measure.name), value);
    values_[plan.metric(measure.name)] = value;
  }
}

void Recorder::watch_loss(const base::MetricsRecord& record) {
  const double* loss = record.find("val/loss");
  if (loss == nullptr) return;
  const bool better = evaluations_since_best_ < 0 || *loss < best_loss_;
  if (better) best_loss_ = *loss;
  evaluations_since_best_ = better ? 0 : evaluations_since_best_ + 1;
}

void Recorder::write_rows(const EvaluationPlan& plan, int64_t step, const Batch& rows) const {
  const Batch first = rows.slice(0, std::min(rows.rows(), kHeldOutSamples));
  const std::filesystem::path path =
      plan.of_training ? directory_.samples(step) : directory_.held_out_samples(step, plan.name);
  if (const std::optional<RowNumber>& number = plan.row_number)
    write_measured(first, *number, plan.measured == MeasureKind::kPairs, *data_.tokenizer, step, path);
  else
    write_samples(first, *data_.tokenizer, step, path);
}

void Recorder::add(const base::MetricsRecord& record) {
  last_ = record;
  totals_.add(record);
  best_metric_.add(record);
  for (const std::string& warning : watch_.add(record)) base::log_warning("iteration {}: {}", record.step, warning);
}

void Recorder::write(base::MetricsRecord record) {
  add(record);
  if (config_.log.names == std::string("trl"))
    for (auto& [name, value] : record.values)
      if (const std::string_view theirs = base::trl_name(name); !theirs.empty()) name = theirs;
  open_copies(record);
  writer_->append(record);
  if (tensorboard_) tensorboard_->append(record);
  if (wandb_) wandb_->append(record);
  if (on_record) on_record(record);
}

// Opens the copies of metrics.jsonl for other programs, with the lines that are there; `first` is yet to come.
void Recorder::open_copies(const base::MetricsRecord& first) {
  const double wall_start = unix_seconds() - first.time_seconds;
  if (config_.log.tensorboard && !tensorboard_)
    tensorboard_.emplace(directory_.path() / "tensorboard", wall_start, base::read_metrics(directory_.metrics()));
  if (config_.log.wandb && !wandb_) {
    const std::string name = std::filesystem::absolute(directory_.path()).lexically_normal().filename().string();
    wandb_.emplace(directory_.path() / "wandb", WandbRun{name, base::to_json(config_.section_value()), wall_start},
                   base::read_metrics(directory_.metrics()));
  }
}

void Recorder::finish() {
  if (waiting_) write(std::move(*waiting_));
  waiting_.reset();
  writer_->sync();
  if (wandb_) wandb_->finish(seconds());
  wandb_.reset();
}

flow::Retention Recorder::retention() const {
  flow::Retention keep{.newest = config_.run.keep_checkpoints};
  if (best_metric_.asked()) keep.value = [this](int64_t step) { return best_metric_.value(step); };
  return keep;
}

bool Recorder::out_of_patience() const {
  return config_.run.patience > 0 && evaluations_since_best_ >= config_.run.patience;
}

double Recorder::seconds() const { return seconds_ + base::now_seconds() - start_seconds_; }

std::string Recorder::details() const {
  static const std::vector<std::pair<std::string, std::string>> shown = {
      {"critic/rewards/mean", "reward"},          {"actor/loss", "loss"},      {"actor/kl_loss", "kl"},
      {"response_length/mean", "length"},         {"actor/grad_norm", "grad"}, {"val/accuracy", "val accuracy"},
      {"val/rewards/accuracies", "val accuracy"}, {"val/loss", "val loss"},    {kRewardErrors, "failed rewards"}};
  std::string text;
  for (const auto& [name, label] : shown)
    if (const double* value = last_.find(name); value != nullptr && (name != kRewardErrors || *value != 0))
      text += fmt::format("{}{} {:.4g}", text.empty() ? "" : "  ", label, *value);
  return text;
}

// Puts the lines before a checkpoint on the disk before the checkpoint is.
void Recorder::save(base::StateWriter& out) const {
  writer_->sync();
  out.json(kMetricsState, flow::measure_file(directory_.metrics()));
  nlohmann::json state = *this;
  state["seconds"] = seconds();
  out.json("recorder", state);
}

void Recorder::load(base::StateReader& in) {
  in.json("recorder").get_to(*this);
  if (!waiting_) return;
  // The evaluation that the line waits for runs again, so what it wrote before the interruption is removed.
  if (evaluates_after(waiting_->step - 1)) {
    writer_.emplace(directory_.metrics(), waiting_->step - 1);
    return;
  }
  // A shorter run ended there, after which this one evaluates nothing, so its line stays as it was written.
  base::MetricsRecord ended = std::move(*std::exchange(waiting_, std::nullopt));
  const std::vector<base::MetricsRecord> lines = base::read_metrics(directory_.metrics());
  if (lines.empty() || lines.back().step < ended.step)
    write(std::move(ended));
  else
    add(ended);
}

}  // namespace collimate::recipe

#include "collimate/recipe/run_directory.h"

#include "collimate/base/error.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/host/atomic_file.h"
#include "collimate/recipe/model_files.h"
#include "collimate/recipe/prepare.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

constexpr const char* kResolved = "config.resolved.yaml";

// Nothing, or an InputError that says why this directory, which `option` names, is not the run's.
void check_same_run(const Config& config, const fs::path& directory, const std::string& option) {
  const bool resume = option == "--resume";
  const char* wanted = resume ? "the directory of a run of this config" : "a new directory or one of this run";
  const std::string remedy = resume ? "the --output of the run to go on from" : "another --output";
  if (!fs::is_directory(directory))
    throw InputError(expectation(option, wanted, directory.string() + ", which is no directory", remedy));
  if (!fs::exists(directory / kResolved))
    throw InputError(expectation(option, wanted, directory.string() + ", which holds other files", remedy));
  Config old;
  base::apply(base::load_config(directory / kResolved), old);
  if (base::config_hash(old) != base::config_hash(config))
    throw InputError(expectation(option, wanted,
                                 fmt::format("{} of another config (hash {}, this one {})", directory.string(),
                                             base::config_hash(old), base::config_hash(config)),
                                 remedy));
}

}  // namespace

RunDirectory::RunDirectory(const Config& config, const Plan& plan, const std::string& output, const std::string& resume)
    : path_(output) {
  const bool used = fs::exists(path_) && (!fs::is_directory(path_) || !fs::is_empty(path_));
  if (used && resume == "never")
    throw InputError(expectation("--output", "a new or empty directory with --resume never", output, "--resume auto"));
  if (used) check_same_run(config, path_, "--output");
  const fs::path source = resume == "auto" || resume == "never" ? path_ : fs::path(resume);
  if (source != path_) check_same_run(config, source, "--resume");
  const nlohmann::json models = weight_files(plan);
  own_ = source == path_ || (used && fs::equivalent(source, path_));
  if (resume != "never") checkpoint_ = flow::Checkpoints(source, config.run.keep_checkpoints).latest();
  if (!checkpoint_.empty()) {
    completed_ = flow::checkpoint_step(checkpoint_);
    check_weight_files(models, source);
  }
  fs::create_directories(path_);
  fresh_ = !used;
  if (fresh_) host::write_file_atomically(path_ / kResolved, resolved_text(config, plan));
  keep_weight_files(models, path_);
}

std::optional<nlohmann::ordered_json> RunDirectory::summary() const {
  const fs::path path = path_ / "summary.json";
  if (!own_ || checkpoint_.empty() || !fs::exists(path)) return std::nullopt;
  auto summary = nlohmann::ordered_json::parse(host::read_file(path), nullptr, false);
  const bool of_checkpoint =
      summary.is_object() && summary.contains("iterations") && summary.at("iterations") == completed_;
  return of_checkpoint ? std::optional(std::move(summary)) : std::nullopt;
}

void RunDirectory::give_up() const {
  std::error_code ignored;
  const bool metrics = fs::exists(path_ / "metrics.jsonl") && fs::file_size(path_ / "metrics.jsonl", ignored) > 0;
  if (fresh_ && !metrics && flow::Checkpoints(path_, 1).latest().empty()) fs::remove_all(path_, ignored);
}

fs::path RunDirectory::samples(int64_t step) const { return path_ / "samples" / fmt::format("step-{:06}.jsonl", step); }
fs::path RunDirectory::held_out_samples(int64_t step) const {
  return path_ / "samples" / fmt::format("eval-{:06}.jsonl", step);
}

}  // namespace collimate::recipe

#include "collimate/recipe/run_directory.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/flow/checkpoint.h"
#include "collimate/flow/checkpoints.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/checksum.h"
#include "collimate/model/safetensors.h"
#include "collimate/recipe/directory_lock.h"
#include "collimate/recipe/prepare.h"
#include "collimate/recipe/run_files.h"
#include "collimate/recipe/run_inputs.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;
using base::expectation;
using base::InputError;

InputError unusable(const char* expected, const fs::path& output, const std::error_code& error) {
  return InputError(
      expectation("--output", expected, fmt::format("{}: {}", output.string(), error.message()), "another --output"));
}

// Is anything there but a lock's file, the rows of a run that is to begin, and the partial config of a run that was
// killed as it began? A path that cannot be looked at counts as empty, as begin() is to make it.
bool holds_files(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return false;
  if (!fs::is_directory(path)) return true;
  const fs::directory_iterator entries(path, error);
  if (error) throw unusable("a directory that can be read", path, error);
  const std::vector<std::string> ours = {kLockFile, kRowsDirectory, std::string(kResolvedFile) + ".partial"};
  return std::any_of(fs::begin(entries), fs::end(entries), [&](const fs::directory_entry& entry) {
    return std::ranges::find(ours, entry.path().filename().string()) == ours.end();
  });
}

int64_t lines_in(const fs::path& file) {
  if (!fs::exists(file)) return 0;
  const std::string text = host::read_file(file);
  return std::count(text.begin(), text.end(), '\n');
}

// Copies a file, or the files below a directory, where `to` has none yet.
void copy_missing(const fs::path& from, const fs::path& to) {
  if (!fs::is_directory(from)) {
    if (!fs::exists(to)) host::write_file_atomically(to, host::read_file(from));
    return;
  }
  fs::create_directories(to);
  for (const fs::directory_entry& entry : fs::directory_iterator(from))
    copy_missing(entry.path(), to / entry.path().filename());
}

// Copies what a run adds to as it goes on, where `to` has none of it yet. The recording copies itself
// (flow/recording.h).
void copy_records(const fs::path& from, const fs::path& to) {
  for (const char* name : {kMetricsFile, kJournalFile, "samples", "tensorboard"})
    if (fs::exists(from / name)) copy_missing(from / name, to / name);
}

// Copies the checkpoint that a run goes on from into `run` where that has none yet, as it goes on alone from there.
void copy_checkpoint(const std::string& checkpoint, const fs::path& run) {
  flow::Checkpoints own(run);
  if (!own.latest().empty()) return;
  const fs::path building = own.begin(flow::checkpoint_step(checkpoint));
  std::error_code error;
  fs::copy(checkpoint, building, fs::copy_options::recursive, error);
  if (error) host::throw_io_error(building, "to copy " + checkpoint, error.value());
  own.commit();
  own.settle();
}

// Returns what the run's recorder saved of metrics.jsonl; null in a checkpoint without it.
nlohmann::json saved_metrics(const std::string& checkpoint) {
  flow::DirectoryReader state(checkpoint + "/state-0");
  return state.has(kMetricsState) ? state.json(kMetricsState) : nlohmann::json();
}

// Throws InputError for a damaged checkpoint, with the newest one before it that is as it was written.
void check_checkpoint(const std::string& checkpoint, const fs::path& run) {
  const std::string form = flow::other_form_of(checkpoint);
  const std::string damage = form.empty() ? flow::damage_in(checkpoint) : form;
  if (damage.empty()) return;
  std::string other_way = "a new --output: no earlier checkpoint is undamaged";
  for (const std::string& other : flow::Checkpoints(run).list())
    if (flow::checkpoint_step(other) < flow::checkpoint_step(checkpoint) && flow::other_form_of(other).empty() &&
        flow::damage_in(other).empty())
      other_way = fmt::format("--resume {}, the newest undamaged checkpoint before it", other);
  throw InputError(
      fmt::format("{}; try {}, or {}", damage, form.empty() ? "restoring it" : "the program that wrote it", other_way));
}

// Warns where metrics.jsonl is gone. Throws InputError where it does not begin with what the checkpoint knows of it.
void check_metrics(const std::string& checkpoint, const fs::path& run) {
  const nlohmann::json saved = saved_metrics(checkpoint);
  const fs::path path = run / kMetricsFile;
  if (saved.is_null()) return;
  const auto bytes = saved.at("bytes").get<size_t>();
  if (!fs::exists(path)) {
    if (bytes > 0)
      base::log_warning("{}: {} bytes that were written are gone: a new recording begins", path.string(), bytes);
    return;
  }
  const std::string text = host::read_file(path);
  const uint32_t crc = host::crc32c(std::as_bytes(std::span(text).first(std::min(bytes, text.size()))));
  if (text.size() >= bytes && crc == saved.at("crc32c").get<uint32_t>()) return;
  throw InputError(expectation(path.string(),
                               fmt::format("the {} bytes that were written before {}", bytes, checkpoint),
                               text.size() < bytes ? fmt::format("{} bytes", text.size()) : "others",
                               "restoring the file, or moving it away to go on without those records"));
}

// Warns of metrics that are not as they were written: a run that has ended loses nothing but what its report says.
void warn_of_metrics(const std::string& checkpoint, const fs::path& run) {
  try {
    check_metrics(checkpoint, run);
  } catch (const InputError& error) {
    base::log_warning("{}", error.what());
  }
}

// A run that has ended writes its model anew where one of these options has changed.
constexpr const char* kOfTheExport[] = {"train.export_dtype", "run.best_metric"};
// A run that has ended early goes on where one of these has changed.
constexpr const char* kOfTheEnd[] = {"run.iterations", "run.epochs", "run.patience"};

bool any_changed(const std::vector<std::string>& changes, std::span<const char* const> options) {
  return std::ranges::any_of(changes, [&](const std::string& change) {
    return std::ranges::find(options, change.substr(0, change.find(':'))) != options.end();
  });
}

// Holds the keys of one config or both that differ, as in "train.learning_rate: 1e-06 -> 2e-06". Keys outside of the
// config's hash are allowed to differ.
struct Differences {
  std::vector<std::string> allowed, refused;
};

// Adds what a config says of each key by its JSON pointer, as nlohmann's flatten() does. A list of plain values stays
// one value.
void add_leaves(const nlohmann::json& value, const nlohmann::json::json_pointer& at, nlohmann::json& leaves) {
  const bool plain_list =
      value.is_array() && std::ranges::none_of(value, [](const auto& part) { return part.is_structured(); });
  if (!value.is_structured() || value.empty() || plain_list) {
    leaves[at.to_string()] = value.is_structured() && value.empty() ? nlohmann::json() : value;
    return;
  }
  for (const auto& [key, part] : value.items())
    add_leaves(part, value.is_array() ? at / std::stoul(key) : at / key, leaves);
}

Differences differences(const Config& old, const Config& now) {
  const auto flat = [](const Config& config, bool hashed_only) {
    nlohmann::json leaves = nlohmann::json::object();
    add_leaves(base::to_json(config.section_value(hashed_only)), nlohmann::json::json_pointer(), leaves);
    return leaves;
  };
  const nlohmann::json before = flat(old, false), after = flat(now, false);
  nlohmann::json hashed = flat(old, true);
  hashed.update(flat(now, true));
  nlohmann::json all = before;
  all.update(after);
  Differences found;
  for (const auto& item : all.items()) {
    const std::string& pointer = item.key();
    const auto text = [&](const nlohmann::json& values) {
      return values.contains(pointer) ? values.at(pointer).dump() : "nothing";
    };
    if (text(before) == text(after)) continue;
    // This was an earlier program's default, which the policy's positions did not lower. Its rows fitted the policy all
    // the same.
    if (pointer == "/data/max_tokens" && now.data.max_tokens.where().empty() &&
        old.data.max_tokens == Config().data.max_tokens)
      continue;
    const std::string key = config_key(pointer);
    (hashed.contains(pointer) ? found.refused : found.allowed)
        .push_back(fmt::format("{}: {} -> {}", key, text(before), text(after)));
  }
  return found;
}

// Returns how to begin another run beside the one of this directory, or in its place, in words for "try …".
std::string anew(const TrainCall& call) {
  const std::string in_its_place = holds_run(call.output) ? "--overwrite, which removes that run, or " : "";
  if (!call.command_for) return in_its_place + "another --output";
  std::string stem = fs::path(call.output).lexically_normal().string();
  while (stem.size() > 1 && stem.ends_with('/')) stem.pop_back();
  int64_t number = 2;
  while (fs::exists(fmt::format("{}-{}", stem, number))) ++number;
  return fmt::format("{}another --output: {}", in_its_place, call.command_for(fmt::format("{}-{}", stem, number)));
}

// Returns the checkpoints that stand beside a missing one, or the remedy where there are none.
std::string checkpoints_beside(const fs::path& missing, const std::string& remedy) {
  std::vector<std::string> names;
  std::error_code ignored;
  if (missing.parent_path().filename() == "checkpoints")
    for (const auto& entry : fs::directory_iterator(missing.parent_path(), ignored))
      if (flow::is_checkpoint(entry.path())) names.push_back(entry.path().string());
  std::ranges::sort(names);
  return names.empty() ? remedy : fmt::format("one that is kept (run.keep_checkpoints): {}", fmt::join(names, ", "));
}

// Returns the keys that have changed since the run began. Throws InputError, which says why, where this directory,
// which `option` names, is not the run's.
std::vector<std::string> check_same_run(const Config& config, const fs::path& directory, const std::string& option,
                                        const std::string& another) {
  const bool resume = option == "--resume";
  const char* wanted = resume ? "the directory of a run of this config" : "a new directory or one of this run";
  const std::string remedy = resume ? "the --output of the run to go on from" : another;
  if (!fs::is_directory(directory))
    throw InputError(expectation(option, wanted, directory.string() + ", which is no directory",
                                 resume ? checkpoints_beside(directory, remedy) : remedy));
  if (!fs::exists(directory / kResolvedFile))
    throw InputError(expectation(option, wanted, directory.string() + ", which holds other files", remedy));
  const Config old = load((directory / kResolvedFile).string(), {});
  const Differences found = differences(old, config);
  if (!found.refused.empty())
    throw InputError(expectation(
        option, wanted, fmt::format("{} of another config ({})", directory.string(), fmt::join(found.refused, "; ")),
        "the values that it began with, or " + remedy));
  return found.allowed;
}

}  // namespace

std::string run_to_resume(const TrainCall& call) {
  const std::string &resume = call.resume, &output = call.output;
  if (resume == "never") return "";
  if (resume == "auto") return call.overwrite || (holds_run(output) && holds_nothing_learned(output)) ? "" : output;
  if (!flow::is_checkpoint(resume)) return resume;
  const std::string run = flow::run_of_checkpoint(resume);
  return run.empty() ? "." : run;
}

std::vector<std::string> refused_changes(const fs::path& run, const Config& config) {
  try {
    return differences(load((run / kResolvedFile).string(), {}), config).refused;
  } catch (const InputError& error) {
    return {error.what()};
  }
}

RunDirectory::RunDirectory(const Config& config, const Plan& plan, const RunData& data, const TrainCall& call)
    : path_(call.output), fresh_(!holds_files(path_)) {
  if (!fresh_) make_way(config, call);
  const std::string &output = call.output, &resume = call.resume, another = anew(call);
  if (!fresh_ && resume == "never")
    throw InputError(expectation("--output", "a new or empty directory with --resume never", output,
                                 "--resume auto, which goes on with a run of the same config, or " + another));
  if (!fresh_) changed_ = check_same_run(config, path_, "--output", another);
  const bool by_name = resume != "auto" && resume != "never";
  const fs::path source = by_name ? fs::path(run_to_resume(call)) : path_;
  if (source != path_) changed_ = check_same_run(config, source, "--resume", another);
  if (!lock_.valid() && !fresh_) lock_ = lock_directory(path_);
  const nlohmann::json inputs = run_inputs(plan, data);
  own_ = source == path_ || (!fresh_ && fs::equivalent(source, path_));
  if (by_name && flow::is_checkpoint(resume))
    checkpoint_ = resume;
  else if (source != path_ || !fresh_)
    checkpoint_ = flow::Checkpoints(source).latest();
  if (!checkpoint_.empty()) {
    completed_ = flow::checkpoint_step(checkpoint_);
    if (completed_ > config.run.iterations)
      throw InputError(expectation("run.iterations", fmt::format("at least the {} that are done", completed_),
                                   std::to_string(config.run.iterations.get()),
                                   "as many or more, or --overwrite to begin anew"));
    goes_on_ = any_changed(changed_, kOfTheEnd) && completed_ < config.run.iterations;
    check_inputs(inputs, source, another);
    exports_anew_ = any_changed(changed_, kOfTheExport);
    if (ended()) {
      warn_of_metrics(checkpoint_, source);
    } else {
      check_checkpoint(checkpoint_, source);
      check_metrics(checkpoint_, source);
    }
  }
  if (fresh_) begin(resolved_text(config, plan));
  if (own_ && !changed_.empty()) {
    // The summary goes first: with it and the new config the run would be one that has ended.
    if (goes_on_) fs::remove(path_ / kSummaryFile);
    resolved_ = resolved_text(config, plan);
    if (fs::exists(path_ / kAnewDirectory)) host::remove_directory(path_ / kAnewDirectory);
    if (!writes_anew()) {
      if (exports_anew_ && fs::exists(path_ / "model")) host::remove_directory(path_ / "model");  // trained further
      host::write_file_atomically(path_ / kResolvedFile, resolved_);
    }
  }
  if (checkpoint_.empty()) dropped_lines_ = lines_in(path_ / kMetricsFile);
  fs::create_directories(path_ / "logs");
  keep_inputs(inputs, path_);
  if (own_ && checkpoint_ == resume) flow::Checkpoints(path_).remove_after(completed_);
  if (own_ || checkpoint_.empty()) return;
  copy_records(source, path_);
  copy_checkpoint(checkpoint_, path_);
}

// Decides whether the run that is there makes way. Then begin() removes it, when nothing speaks against this run.
void RunDirectory::make_way(const Config& config, const TrainCall& call) {
  const bool run = holds_run(path_);
  if (call.overwrite && !run)
    throw InputError(expectation("--overwrite", "a directory that holds a run",
                                 path_.string() + ", which holds other files", anew(call)));
  const auto is_useless = [&] { return holds_nothing_learned(path_) && !refused_changes(path_, config).empty(); };
  if (!call.overwrite && (!run || call.resume != "auto" || !is_useless())) return;
  if (const std::string source = run_to_resume(call); fs::exists(source) && fs::equivalent(source, path_))
    throw InputError(expectation("--resume", "another run than the one that --overwrite removes", call.resume,
                                 "leaving out one of the two"));
  refuse_to_remove_inputs(path_, config, {{"--resume", call.resume}, {"--replay", call.replay}});
  lock_ = lock_directory(path_);
  if (!call.overwrite && !is_useless()) return;  // it learned something before the lock was free
  fresh_ = true;
  removed_ = fmt::format(
      "removed: the run that was in {}{}", path_.string(),
      call.overwrite ? " (--overwrite)" : ", which had another config and ended before an iteration was done");
}

void RunDirectory::begin(const std::string& resolved) {
  if (const std::error_code error = host::make_directories(path_); error)
    throw unusable("a directory that can be made", path_, error);
  if (!lock_.valid()) lock_ = lock_directory(path_);
  if (!removed_.empty()) remove_run(path_);
  if (fs::exists(path_ / kResolvedFile))
    throw InputError(expectation("--output", "a new directory or one of this run",
                                 path_.string() + ", in which another process has just begun one", "the same again"));
  host::write_file_atomically(path_ / kResolvedFile, resolved);
}

fs::path RunDirectory::model_to_write() const { return (writes_anew() ? path_ / kAnewDirectory : path_) / "model"; }

// Writes the config last, so that the next call repeats one that is cut off before.
void RunDirectory::keep_export() const {
  if (!writes_anew()) return;
  for (const char* model : {"model-ema", "model"})
    if (fs::exists(path_ / kAnewDirectory / model)) host::move_directory(path_ / kAnewDirectory / model, path_ / model);
  host::remove_directory(path_ / kAnewDirectory);
  host::write_file_atomically(path_ / kResolvedFile, resolved_);
}

std::optional<nlohmann::ordered_json> RunDirectory::summary() const {
  const fs::path path = path_ / kSummaryFile;
  if (!own_ || goes_on_ || checkpoint_.empty() || !fs::exists(path)) return std::nullopt;
  auto summary = nlohmann::ordered_json::parse(host::read_file(path), nullptr, false);
  const bool of_checkpoint =
      summary.is_object() && summary.contains("iterations") && summary.at("iterations") == completed_;
  return of_checkpoint ? std::optional(std::move(summary)) : std::nullopt;
}

bool RunDirectory::has_model() const {
  const fs::path model = path_ / "model";
  const bool adapters = fs::exists(model / "adapter_config.json");
  if (!adapters && !fs::exists(model / "config.json")) return false;
  try {
    if (adapters)
      model::open_tensor_file(model::adapter_files(model.string()).back());
    else
      model::TensorDirectory{model.string()};
    return true;
  } catch (const InputError&) {
    return false;
  }
}

void RunDirectory::give_up() const {
  std::error_code ignored;
  const bool metrics = fs::exists(path_ / kMetricsFile) && fs::file_size(path_ / kMetricsFile, ignored) > 0;
  if (!fresh_ || metrics || !flow::Checkpoints(path_).latest().empty()) return;
  try {
    remove_run(path_);
  } catch (const base::RunError& error) {
    base::log_warning("{}", error.what());  // the error for which the run was given up is the one that ends it
  }
  if (holds_files(path_)) return;
  fs::remove(path_ / kLockFile, ignored);
  fs::remove(path_, ignored);  // unless it holds rows
}

fs::path RunDirectory::samples(int64_t step) const { return path_ / "samples" / fmt::format("step-{:06}.jsonl", step); }
fs::path RunDirectory::held_out_samples(int64_t step, const std::string& evaluation) const {
  return path_ / "samples" / evaluation / fmt::format("eval-{:06}.jsonl", step);
}

}  // namespace collimate::recipe

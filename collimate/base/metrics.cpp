#include "collimate/base/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "collimate/base/characters.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/base/json.h"
#include "collimate/base/read_file.h"

namespace collimate::base {
namespace {

constexpr std::pair<std::string_view, std::string_view> kTrlNames[] = {
    {"actor/loss", "loss"},
    {"actor/grad_norm", "grad_norm"},
    {"actor/lr", "learning_rate"},
    {"actor/kl_loss", "kl"},
    {"actor/entropy", "entropy"},
    {"actor/pg_clipfrac", "clip_ratio/region_mean"},
    {"critic/rewards/mean", "reward"},
    {"critic/rewards/group_std", "reward_std"},
    {"critic/rewards/frac_zero_std", "frac_reward_zero_std"},
    {"response_length/mean", "completions/mean_length"},
    {"response_length/min", "completions/min_length"},
    {"response_length/max", "completions/max_length"},
    {"response_length/clip_ratio", "completions/clipped_ratio"},
    {"perf/total_num_tokens", "num_tokens"},
    {"timing_s/step", "step_time"},
    {"val/loss", "eval_loss"}};

[[noreturn]] void disk_failed(const std::filesystem::path& path, const char* action, int error_number) {
  throw RunError(expectation(path.string(), action, std::strerror(error_number)));
}

double nonfinite_value(const std::string& text) {
  if (text == "nan") return NAN;
  return text == "inf" ? INFINITY : -INFINITY;
}

std::string nonfinite_name(double value) {
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

// Returns where the file is to be cut: after the last whole line before the first with a step above `keep_through`.
int64_t kept_bytes(const std::filesystem::path& path, int64_t keep_through) {
  if (!std::filesystem::exists(path)) return 0;
  std::istringstream file(read_file(path));
  int64_t kept = 0, number = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    if (parse_metrics_line(line, fmt::format("{}:{}", path.string(), ++number)).step > keep_through) break;
    kept += static_cast<int64_t>(line.size()) + 1;
  }
  return kept;
}

}  // namespace

std::string_view trl_name(std::string_view name) {
  const auto* found = std::ranges::find(kTrlNames, name, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kTrlNames) ? std::string_view() : found->second;
}

void MetricsRecord::set(std::string_view name, double value) {
  for (auto& entry : values) {
    if (entry.first == name) {
      entry.second = value;
      return;
    }
  }
  values.emplace_back(name, value);
}

const double* MetricsRecord::find(std::string_view name) const {
  for (const auto& entry : values) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

std::string to_json_line(const MetricsRecord& record) {
  nlohmann::ordered_json line = {{"step", record.step}, {"time_seconds", record.time_seconds}};
  auto nonfinite = nlohmann::ordered_json::array();
  for (const auto& [name, value] : record.values) {
    line[name] = std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json();
    if (!std::isfinite(value)) nonfinite.push_back(name + "=" + nonfinite_name(value));
  }
  if (!nonfinite.empty()) line["nonfinite"] = std::move(nonfinite);
  return line.dump() + "\n";
}

MetricsRecord parse_metrics_line(const std::string& line, const std::string& where) {
  const auto json = parse_ordered_json(line, where);
  if (!json.is_object() || !json.contains("step") || !json["step"].is_number_integer()) {
    throw InputError(expectation(where, "a JSON object with a step", fmt::format("\"{}\"", beginning_of(line, 80))));
  }
  MetricsRecord record;
  for (const auto& [name, value] : json.items()) {
    if (name == "step") {
      record.step = value.get<int64_t>();
    } else if (name == "time_seconds" && value.is_number()) {
      record.time_seconds = value.get<double>();
    } else if (value.is_number()) {
      record.values.emplace_back(name, value.get<double>());
    } else if (value.is_null()) {
      record.values.emplace_back(name, NAN);
    }
  }
  for (const auto& entry : json.value("nonfinite", nlohmann::ordered_json::array())) {
    if (!entry.is_string()) throw InputError(expectation(where, "texts as \"loss=nan\" in nonfinite", entry.dump()));
    const std::string text = entry.get<std::string>();
    const size_t equals = text.rfind('=');
    record.set(text.substr(0, equals), nonfinite_value(text.substr(equals + 1)));
  }
  return record;
}

void for_each_metrics(const std::filesystem::path& path, std::vector<std::string>* unreadable,
                      const std::function<void(MetricsRecord)>& take) {
  if (!std::filesystem::exists(path)) throw InputError(expectation(path.string(), "a metrics file", "no such file"));
  std::istringstream file(read_file(path));
  int64_t number = 0;
  for (std::string line; std::getline(file, line) && !file.eof();) {
    MetricsRecord record;
    try {
      record = parse_metrics_line(line, fmt::format("{}:{}", path.string(), ++number));
    } catch (const InputError& error) {
      if (unreadable == nullptr) throw;
      unreadable->push_back(error.what());
      continue;
    }
    take(std::move(record));
  }
}

std::vector<MetricsRecord> read_metrics(const std::filesystem::path& path, std::vector<std::string>* unreadable) {
  std::vector<MetricsRecord> records;
  for_each_metrics(path, unreadable, [&](MetricsRecord record) { records.push_back(std::move(record)); });
  return records;
}

MetricsWriter::MetricsWriter(std::filesystem::path path, int64_t keep_through) : path_(std::move(path)) {
  const int64_t kept = kept_bytes(path_, keep_through);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) disk_failed(path_, "to open the metrics", errno);
  if (::ftruncate(fd_, kept) != 0) {
    const int error_number = errno;
    ::close(fd_);
    disk_failed(path_, "to cut the metrics back", error_number);
  }
}

MetricsWriter::~MetricsWriter() { ::close(fd_); }

// Afterwards a record is in the file as a whole or not at all.
void MetricsWriter::append(const MetricsRecord& record) {
  const std::string line = to_json_line(record);
  const off_t before = ::lseek(fd_, 0, SEEK_END);
  const size_t allowed = allowed_disk_bytes(line.size());
  int error_number = allowed < line.size() ? ENOSPC : 0;
  for (size_t written = 0; written < allowed;) {
    const ssize_t count = ::write(fd_, line.data() + written, allowed - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      error_number = errno;
      break;
    }
    written += static_cast<size_t>(count);
  }
  if (error_number == 0) return;
  if (::ftruncate(fd_, before) != 0) error_number = errno;
  disk_failed(path_, "to append a record", error_number);
}

void MetricsWriter::sync() const {
  if (::fdatasync(fd_) != 0) disk_failed(path_, "to reach the disk", errno);
}

}  // namespace collimate::base

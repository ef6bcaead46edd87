#include "collimate/recipe/wandb.h"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <random>

#include "collimate/base/error.h"

namespace collimate::recipe {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBlockBytes = 1 << 15, kHeadBytes = 7;  // of a frame: checksum, length, type
constexpr unsigned char kWhole = 1, kFirst = 2, kMiddle = 3, kLast = 4;
constexpr const char* kPrefix = "offline-run-";

// These are fields of Record, and of the entries of a history, a summary and a config.
enum RecordField : unsigned { kHistory = 2, kSummary = 3, kRun = 17, kExit = 18 };
enum ItemField : unsigned { kKey = 1, kValueJson = 16 };

// Returns CRC-32 as zlib and gzip have it (ISO 3309), computed bit by bit, as a record is short.
uint32_t crc32(unsigned char type, const std::string& data) {
  uint32_t state = ~0U;
  const auto add = [&](unsigned char byte) {
    state ^= byte;
    for (int bit = 0; bit < 8; ++bit) state = (state >> 1) ^ ((state & 1U) != 0 ? 0xedb88320U : 0U);
  };
  add(type);
  for (const char c : data) add(static_cast<unsigned char>(c));
  return ~state;
}

ProtobufMessage item(const std::string& key, const std::string& json) {
  ProtobufMessage out;
  out.add_text(kKey, key).add_text(kValueJson, json);
  return out;
}

// Returns a number as W&B reads it: NaN and Infinity are JSON to it.
std::string json_of(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}

std::string new_id() {
  std::random_device random;
  std::string id;
  while (id.size() < 8) id += "0123456789abcdefghijklmnopqrstuvwxyz"[random() % 36];
  return id;
}

// Returns "offline-run-20260131_235959-ab12cd34": the newest folder for a run that goes on, else a new one.
std::string folder_name(const fs::path& directory, double wall_start, bool goes_on) {
  std::string name;
  if (goes_on && fs::is_directory(directory))
    for (const fs::directory_entry& entry : fs::directory_iterator(directory))
      if (const std::string one = entry.path().filename().string(); one.starts_with(kPrefix))
        name = std::max(name, one);
  if (!name.empty()) return name;
  const auto begin = static_cast<std::time_t>(wall_start);
  std::tm local{};
  localtime_r(&begin, &local);
  char time[32];
  std::strftime(time, sizeof time, "%Y%m%d_%H%M%S", &local);
  return fmt::format("{}{}-{}", kPrefix, time, new_id());
}

ProtobufMessage run_message(const WandbRun& run, const std::string& id) {
  ProtobufMessage config, start, out;
  for (const auto& [key, value] : run.config.items()) config.add_message(1, item(key, value.dump()));
  const double whole = std::floor(run.wall_start);
  start.add_int(1, static_cast<int64_t>(whole)).add_int(2, static_cast<int64_t>((run.wall_start - whole) * 1e9));
  out.add_text(1, id).add_text(3, "collimate").add_message(4, config).add_text(8, run.name).add_message(17, start);
  return out;
}

}  // namespace

WandbWriter::WandbWriter(const fs::path& directory, const WandbRun& run,
                         const std::vector<base::MetricsRecord>& earlier)
    : wall_start_(run.wall_start) {
  const std::string folder = folder_name(directory, run.wall_start, !earlier.empty());
  const std::string id = folder.substr(folder.rfind('-') + 1);
  path_ = directory / folder / fmt::format("run-{}.wandb", id);
  fs::create_directories(path_.parent_path());
  fs::remove(path_.string() + ".synced");  // as `wandb sync` marks it
  file_.open(path_, std::ios::binary | std::ios::trunc);
  std::string head = ":W&B";
  put_fixed(head, uint16_t{0xbee1});
  put_fixed(head, uint8_t{0});  // version
  file_ << head;
  in_block_ = head.size();
  write(kRun, run_message(run, id));
  for (const base::MetricsRecord& record : earlier) append(record);
}

void WandbWriter::append(const base::MetricsRecord& record) {
  ProtobufMessage history, summary, step;
  const auto add = [&](const std::string& key, const std::string& json) {
    history.add_message(1, item(key, json));
    summary.add_message(1, item(key, json));
  };
  for (const auto& [name, value] : record.values) add(name, json_of(value));
  add("_step", std::to_string(record.step));
  add("_runtime", json_of(record.time_seconds));
  add("_timestamp", json_of(wall_start_ + record.time_seconds));
  write(kHistory, history.add_message(2, step.add_int(1, record.step)));
  write(kSummary, summary);
}

void WandbWriter::finish(double seconds) {
  ProtobufMessage exit;
  write(kExit, exit.add_int(2, std::llround(seconds)));
}

void WandbWriter::write(unsigned kind, const ProtobufMessage& content) {
  const std::string data = ProtobufMessage().add_int(1, ++records_).add_message(kind, content).bytes();
  for (size_t begin = 0; begin < data.size();) {
    if (kBlockBytes - in_block_ < kHeadBytes) {
      file_ << std::string(kBlockBytes - in_block_, '\0');
      in_block_ = 0;
    }
    const size_t count = std::min(data.size() - begin, kBlockBytes - in_block_ - kHeadBytes);
    const bool first = begin == 0, last = begin + count == data.size();
    write_frame(first ? (last ? kWhole : kFirst) : (last ? kLast : kMiddle), data.substr(begin, count));
    begin += count;
  }
  file_ << std::flush;
  if (!file_) throw base::RunError(base::expectation(path_.string(), "a write", "an error of the disk"));
}

void WandbWriter::write_frame(unsigned char type, const std::string& data) {
  std::string frame;
  put_fixed(frame, crc32(type, data));
  put_fixed(frame, static_cast<uint16_t>(data.size()));
  put_fixed(frame, type);
  file_ << frame << data;
  in_block_ = (in_block_ + frame.size() + data.size()) % kBlockBytes;
}

}  // namespace collimate::recipe

#include "collimate/flow/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "collimate/base/error.h"
#include "collimate/host/file_io.h"

namespace collimate::flow {
namespace fs = std::filesystem;
namespace {

// A name as a file: anything but letters, digits, '-', '_' and '.' becomes %XX.
std::string file_name(const std::string& name) {
  std::string safe;
  for (unsigned char c : name) {
    bool plain = std::isalnum(c) != 0 || c == '-' || c == '_' || (c == '.' && !safe.empty());
    safe += plain ? std::string(1, static_cast<char>(c)) : fmt::format("%{:02X}", c);
  }
  return safe + ".bin";
}

[[noreturn]] void missing(const std::string& directory, const std::string& name) {
  throw base::RunError(base::expectation(directory, "an entry " + name, "none"));
}

void make_directory(const std::string& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw base::RunError(base::expectation(directory, "to make the directory", error.message()));
}

}  // namespace

DirectoryWriter::DirectoryWriter(std::string directory)
    : directory_(std::move(directory)), values_(nlohmann::json::object()) {
  make_directory(directory_);
}

void DirectoryWriter::json(const std::string& name, const nlohmann::json& value) { values_[name] = value; }

void DirectoryWriter::bytes(const std::string& name, std::span<const std::byte> value) {
  host::OutputFile file(directory_ + "/" + file_name(name));
  file.write(value);
  file.close();
}

void DirectoryWriter::finish() {
  host::OutputFile file(directory_ + "/state.json");
  file.write(values_.dump(1));
  file.close();
}

DirectoryReader::DirectoryReader(std::string directory) : directory_(std::move(directory)) {
  std::string path = directory_ + "/state.json";
  if (!fs::exists(path)) throw base::RunError(base::expectation(path, "a saved state", "no such file"));
  values_ = nlohmann::json::parse(host::read_file(path), nullptr, false);
  if (!values_.is_object()) throw base::RunError(base::expectation(path, "a JSON object", "broken JSON"));
}

bool DirectoryReader::has(const std::string& name) const {
  return values_.contains(name) || fs::exists(directory_ + "/" + file_name(name));
}

nlohmann::json DirectoryReader::json(const std::string& name) {
  if (!values_.contains(name)) missing(directory_, name);
  return values_[name];
}

size_t DirectoryReader::bytes_size(const std::string& name) {
  std::error_code error;
  auto size = fs::file_size(directory_ + "/" + file_name(name), error);
  if (error) missing(directory_, name);
  return static_cast<size_t>(size);
}

void DirectoryReader::bytes(const std::string& name, std::span<std::byte> out) {
  size_t size = bytes_size(name);
  if (size != out.size())
    throw base::RunError(
        base::expectation(directory_ + ": " + name, fmt::format("{} bytes", out.size()), std::to_string(size)));
  std::string text = host::read_file(directory_ + "/" + file_name(name));
  auto from = std::as_bytes(std::span(text));
  std::copy(from.begin(), from.end(), out.begin());
}

void save_state(const base::Stateful& object, const std::string& directory) {
  DirectoryWriter writer(directory);
  object.save(writer);
  writer.finish();
}

void load_state(base::Stateful& object, const std::string& directory) {
  DirectoryReader reader(directory);
  object.load(reader);
}

Checkpoints::Checkpoints(std::string run_directory, int64_t keep)
    : directory_(std::move(run_directory) + "/checkpoints"), keep_(std::max<int64_t>(1, keep)) {}

std::string Checkpoints::begin(int64_t step) {
  make_directory(directory_);
  building_.emplace(directory_ + fmt::format("/step-{:06}", step));
  return building_->building().string();
}

std::string Checkpoints::commit() {
  COLLIMATE_CHECK(building_.has_value());
  building_->commit();
  building_.reset();
  std::vector<std::string> all = list();
  for (size_t i = 0; i + static_cast<size_t>(keep_) < all.size(); ++i) fs::remove_all(all[i]);
  return all.back();
}

std::vector<std::string> Checkpoints::list() const {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory_, error)) {
    std::string name = entry.path().filename().string();
    bool complete = name.starts_with("step-") && std::all_of(name.begin() + 5, name.end(), ::isdigit);
    if (complete && name.size() > 5) found.push_back(entry.path().string());
  }
  std::sort(found.begin(), found.end(),
            [](const std::string& a, const std::string& b) { return checkpoint_step(a) < checkpoint_step(b); });
  return found;
}

std::string Checkpoints::latest() const {
  std::vector<std::string> all = list();
  return all.empty() ? "" : all.back();
}

std::string run_of_checkpoint(const std::string& directory) {
  fs::path path = fs::path(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return path.parent_path().parent_path().string();
}

int64_t checkpoint_step(const std::string& directory) {
  std::string name = fs::path(directory).lexically_normal().filename().string();
  if (name.empty()) name = fs::path(directory).lexically_normal().parent_path().filename().string();
  bool good = name.starts_with("step-") && name.size() > 5 && std::all_of(name.begin() + 5, name.end(), ::isdigit);
  if (!good) throw base::InputError(base::expectation("checkpoint", "a directory named step-N", directory));
  return std::stoll(name.substr(5));
}

}  // namespace collimate::flow

#include "collimate/flow/checkpoint.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>

#include "collimate/base/error.h"
#include "collimate/host/checksum.h"
#include "collimate/host/file_io.h"
#include "collimate/host/file_status.h"

namespace collimate::flow {
namespace fs = std::filesystem;
namespace {

// Returns a name as a file's: anything but letters, digits, '-', '_' and '.' becomes %XX, and so does a leading '.'.
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

// Returns the path without a trailing slash, because "runs/a/" and "runs/a" name the same directory.
fs::path named_path(const std::string& directory) {
  const fs::path path = fs::path(directory).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

bool is_step_name(const std::string& name) {
  constexpr size_t kMostDigits = 18;  // of a number that fits in 64 bits whatever its digits
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  return name.starts_with("step-") && name.size() > 5 && name.size() <= 5 + kMostDigits &&
         std::all_of(name.begin() + 5, name.end(), is_digit);
}

constexpr int kForm = 2;                                // of checkpoints
constexpr const char* kFiles = "files.json";            // of a folder: measure_file() of each other file
constexpr const char* kTensors = "tensors.json";        // of a folder: file → {array, parts}
constexpr const char* kCheckpoint = "checkpoint.json";  // {form, step, folders: measure_file() of their kFiles}

std::string described(const nlohmann::json& measured) {
  return fmt::format("{} bytes with CRC-32C {:08x}", measured.at("bytes").get<int64_t>(),
                     measured.at("crc32c").get<uint32_t>());
}

nlohmann::json read_object(const std::string& path) {
  if (!host::path_exists(path)) throw base::RunError(base::expectation(path, "a saved state", "no such file"));
  nlohmann::json values = nlohmann::json::parse(host::read_file(path), nullptr, false);
  if (!values.is_object()) throw base::RunError(base::expectation(path, "a JSON object", "broken JSON"));
  return values;
}

void check_file(const fs::path& path, const nlohmann::json& expected) {
  if (!host::is_file(path)) throw base::RunError(base::expectation(path.string(), "a saved file", "none"));
  const std::string got = described(measure_file(path));
  if (got != described(expected)) throw base::RunError(base::expectation(path.string(), described(expected), got));
}

std::string folder_of(const fs::path& file, const fs::path& checkpoint) {
  return file.parent_path().lexically_relative(checkpoint).generic_string();
}

// Checks all folders that the list names and their files. Returns the list of each folder's files.
std::map<std::string, nlohmann::json> check_folders(const fs::path& checkpoint) {
  const nlohmann::json list = read_object(checkpoint / kCheckpoint);
  if (list.at("step") != checkpoint_step(checkpoint))
    throw base::RunError(base::expectation(checkpoint / kCheckpoint,
                                           fmt::format("the state of step {}", checkpoint_step(checkpoint)),
                                           "that of step " + list.at("step").dump()));
  std::map<std::string, nlohmann::json> folders;
  for (const auto& [name, files] : list.at("folders").items()) {
    const fs::path folder = checkpoint / name;
    if (!host::is_directory(folder)) throw base::RunError(base::expectation(folder.string(), "a saved folder", "none"));
    check_file(folder / kFiles, files);
    folders[name] = read_object(folder / kFiles);
    for (const auto& [file, expected] : folders[name].items()) check_file(folder / file, expected);
  }
  return folders;
}

// Returns what a rank saved beside tensors, to compare with another rank's.
nlohmann::json own_state(const std::string& folder) {
  nlohmann::json files = read_object(folder + "/" + kFiles);
  if (!files.contains(kTensors)) return files;
  const nlohmann::json tensors = read_object(folder + "/" + kTensors);
  for (const auto& [file, content] : tensors.items()) files.erase(file);
  files.erase(kTensors);
  return files;
}

// Refuses a file that belongs to no folder of the list, or is no file of its folder.
void check_for_others(const fs::path& checkpoint, const std::map<std::string, nlohmann::json>& folders) {
  for (const fs::path& path : host::paths_below(checkpoint)) {
    if (path == checkpoint / kCheckpoint || !host::is_file(path)) continue;
    const auto folder = folders.find(folder_of(path, checkpoint));
    const fs::path name = path.filename();
    if (folder == folders.end() || (name != kFiles && !folder->second.contains(name)))
      throw base::RunError(base::expectation(
          path.string(), fmt::format("a file that {} lists", folder == folders.end() ? kCheckpoint : kFiles),
          "another"));
  }
}

}  // namespace

nlohmann::json measure_file(const fs::path& path) {
  const host::MappedFile file(path);
  return {{"bytes", file.size()}, {"crc32c", host::crc32c(file.bytes())}};
}

DirectoryWriter::DirectoryWriter(std::string directory)
    : directory_(std::move(directory)),
      values_(nlohmann::json::object()),
      files_(nlohmann::json::object()),
      tensors_(nlohmann::json::object()) {
  host::ensure_directory(directory_);
}

host::OutputFile DirectoryWriter::begin(const std::string& file) const {
  return host::OutputFile(directory_ + "/" + file);
}

void DirectoryWriter::end(host::OutputFile& file) {
  file.close_unsynced();
  files_[file.path().filename()] = {{"bytes", file.size_bytes()}, {"crc32c", file.crc32c()}};
}

void DirectoryWriter::json(const std::string& name, const nlohmann::json& value) { values_[name] = value; }

void DirectoryWriter::bytes(const std::string& name, std::span<const std::byte> value) {
  host::OutputFile file = begin(file_name(name));
  file.write(value);
  end(file);
}

void DirectoryWriter::tensors(const std::string& array, int piece, std::span<const base::TensorPart> parts,
                              std::span<const float> floats) {
  const std::string name = fmt::format("{}.{}", array, piece);
  bytes(name, std::as_bytes(floats));
  tensors_[file_name(name)] = {{"array", array}, {"parts", std::vector(parts.begin(), parts.end())}};
}

void DirectoryWriter::finish() {
  host::OutputFile file = begin("state.json");
  file.write(values_.dump(1));
  end(file);
  if (!tensors_.empty()) {
    host::OutputFile tensors = begin(kTensors);
    tensors.write(tensors_.dump());
    end(tensors);
  }
  host::OutputFile list = begin(kFiles);
  list.write(files_.dump(1));
  list.close_unsynced();
}

DirectoryReader::DirectoryReader(std::string directory, std::vector<std::string> ranks)
    : directory_(std::move(directory)), ranks_(std::move(ranks)), values_(read_object(directory_ + "/state.json")) {}

bool DirectoryReader::has(const std::string& name) const {
  return values_.contains(name) || host::path_exists(directory_ + "/" + file_name(name));
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

void DirectoryReader::tensors(const std::string& array, std::span<const base::TensorPart> parts,
                              std::span<float> floats) {
  if (!saved_) {
    saved_.emplace(fs::path(directory_).parent_path(), [this](const std::string& file) { return floats_of(file); });
    for (const std::string& rank : ranks_) {
      if (!host::path_exists(rank + "/" + kTensors)) continue;
      const nlohmann::json tensors = read_object(rank + "/" + kTensors);
      for (const auto& [file, content] : tensors.items())
        saved_->add(content.at("array"), rank + "/" + file, content.at("parts").get<std::vector<base::TensorPart>>());
    }
  }
  saved_->read(array, parts, floats);
  mapped_.clear();
}

std::span<const float> DirectoryReader::floats_of(const std::string& file) {
  const auto mapped = mapped_.try_emplace(file, file).first;
  const std::span<const std::byte> bytes = mapped->second.bytes();
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::string other_form_of(const std::string& checkpoint) {
  const std::string path = checkpoint + "/" + kCheckpoint;
  if (!host::is_file(path)) return "";
  const nlohmann::json list = nlohmann::json::parse(host::read_file(path), nullptr, false);
  if (!list.is_object()) return "";
  const nlohmann::json form = list.value("form", nlohmann::json(1));
  if (form == kForm) return "";
  const bool later = form.is_number() && form > kForm;
  return base::expectation(path, fmt::format("a checkpoint of form {}", kForm),
                           fmt::format("form {}, which {} write", form.dump(),
                                       later ? "later versions" : "builds of 0.1.0 before decision 40"));
}

void check_form(const std::string& checkpoint) {
  const std::string other = other_form_of(checkpoint);
  if (!other.empty()) throw base::InputError(other + "; try the program that wrote it, or a new --output");
}

std::string damage_in(const std::string& checkpoint) {
  const fs::path path = named_path(checkpoint);
  try {
    check_for_others(path, check_folders(path));
  } catch (const nlohmann::json::exception& error) {
    return base::expectation(path, "lists of the files that were saved", error.what());
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

void write_list(const std::string& checkpoint, int64_t step) {
  nlohmann::json folders = nlohmann::json::object();
  for (const fs::path& path : host::paths_below(checkpoint))
    if (path.filename() == kFiles) folders[folder_of(path, checkpoint)] = measure_file(path);
  host::OutputFile file(fs::path(checkpoint) / kCheckpoint);
  file.write(nlohmann::json{{"form", kForm}, {"step", step}, {"folders", folders}}.dump(1));
  file.close_unsynced();
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

std::string rank_folder(const std::string& checkpoint, const std::string& model, int rank) {
  return fmt::format("{}/models/{}/rank-{}", checkpoint, model, rank);
}

void load_rank(base::Stateful& object, const std::string& checkpoint, const std::string& model, int rank, int ranks) {
  std::vector<std::string> saved;
  for (int r = 0; host::path_exists(rank_folder(checkpoint, model, r)); ++r)
    saved.push_back(rank_folder(checkpoint, model, r));
  std::string own = rank_folder(checkpoint, model, rank);
  if (static_cast<int>(saved.size()) != ranks && !saved.empty()) {
    own = saved.front();
    for (const std::string& other : saved)
      if (own_state(other) != own_state(own))
        throw base::InputError(base::expectation(fs::path(own).parent_path(),
                                                 fmt::format("the states of {} ranks, as each has another one", ranks),
                                                 std::to_string(saved.size()), "as many devices for it as there were"));
  }
  DirectoryReader reader(own, saved);
  object.load(reader);
}

std::string run_of_checkpoint(const std::string& directory) {
  return named_path(directory).parent_path().parent_path().string();
}

bool is_checkpoint(const std::string& path) {
  return is_step_name(named_path(path).filename().string()) && host::is_directory(path);
}

int64_t checkpoint_step(const std::string& directory) {
  const std::string name = named_path(directory).filename().string();
  if (!is_step_name(name))
    throw base::InputError(base::expectation("checkpoint", "a directory named step-N", directory));
  return std::stoll(name.substr(5));
}

}  // namespace collimate::flow

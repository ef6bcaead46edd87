#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collimate/base/saved_tensors.h"
#include "collimate/base/stateful.h"
#include "collimate/host/atomic_file.h"
#include "collimate/host/mapped_file.h"

namespace collimate::flow {

// A checkpoint is a directory with one folder per Stateful; for models there is one per rank (models/NAME/rank-N). A
// folder has state.json, one raw file per `bytes` or `tensors` entry, tensors.json, which says what parts of which
// tensors these files have, and files.json with the size and CRC-32C of each file. checkpoint.json has the form, the
// step and the size and CRC-32C of each folder's files.json. A checkpoint is written under a temporary name, fsynced
// and renamed (Checkpoints), so that it is complete or absent.

// A DirectoryWriter makes and writes one Stateful's folder. After finish() everything is written, but not fsynced.
// Every method throws RunError naming the file and the reason (disk full).
class DirectoryWriter : public base::StateWriter {
 public:
  explicit DirectoryWriter(std::string directory);
  void json(const std::string& name, const nlohmann::json& value) override;
  void bytes(const std::string& name, std::span<const std::byte> value) override;
  void tensors(const std::string& array, int piece, std::span<const base::TensorPart> parts,
               std::span<const float> floats) override;
  void finish();

 private:
  host::OutputFile begin(const std::string& file) const;
  void end(host::OutputFile& file);

  std::string directory_;
  nlohmann::json values_;
  nlohmann::json files_;    // name → {bytes, crc32c}
  nlohmann::json tensors_;  // name → {array, parts}
};

class DirectoryReader : public base::StateReader {
 public:
  // `ranks` are the folders of all ranks, from which tensors are read. Throws RunError when there is no state.json or
  // it cannot be parsed.
  explicit DirectoryReader(std::string directory, std::vector<std::string> ranks = {});
  bool has(const std::string& name) const override;
  nlohmann::json json(const std::string& name) override;
  size_t bytes_size(const std::string& name) override;
  void bytes(const std::string& name, std::span<std::byte> out) override;
  void tensors(const std::string& array, std::span<const base::TensorPart> parts, std::span<float> floats) override;

 private:
  std::span<const float> floats_of(const std::string& file);

  std::string directory_;
  std::vector<std::string> ranks_;
  nlohmann::json values_;
  std::optional<base::SavedTensors> saved_;         // of all ranks; made by the first call of tensors()
  std::map<std::string, host::MappedFile> mapped_;  // during a call of tensors()
};

// Returns an error text that says which form a checkpoint has that this version does not read, and which versions write
// it. Returns "" where it has the present form, or is so damaged that none can be read.
std::string other_form_of(const std::string& checkpoint);
// Throws InputError where the checkpoint has another form.
void check_form(const std::string& checkpoint);

// Returns a text about the first folder or file of a checkpoint that is missing, foreign (of another step, say) or not
// as it was written, with what was expected and what is there, or "" where there is none. Reads every file.
std::string damage_in(const std::string& checkpoint);

// Returns {bytes, crc32c} of a file.
nlohmann::json measure_file(const std::filesystem::path& path);

// Writes the last file of a checkpoint, which lists its folders and binds them to each other and to its step.
void write_list(const std::string& checkpoint, int64_t step);

void save_state(const base::Stateful& object, const std::string& directory);
void load_state(base::Stateful& object, const std::string& directory);
// Returns the folder of a model's rank in a checkpoint.
std::string rank_folder(const std::string& checkpoint, const std::string& model, int rank);
// Loads a model on one of `ranks`, whatever their number was when it was saved. Its tensors are read from the folders
// of all ranks. Its other state is read from the folder of this rank or, when the number of ranks has changed, from the
// first one. Throws InputError when their number has changed and that state was not the same on all of them.
void load_rank(base::Stateful& object, const std::string& checkpoint, const std::string& model, int rank, int ranks);

// Returns the directory of the run that a checkpoint's directory belongs to.
std::string run_of_checkpoint(const std::string& directory);
// Says whether that is a path of a directory that is named like a checkpoint, step-N.
bool is_checkpoint(const std::string& path);
// Returns how many iterations are complete in that checkpoint, from its name. Throws InputError when the name is not
// step-N.
int64_t checkpoint_step(const std::string& directory);

}  // namespace collimate::flow

#pragma once

#include <cstdint>
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

// A checkpoint is a directory: one folder per Stateful, for models one of each rank (models/NAME/rank-N), with
// state.json, one raw file per `bytes` or `tensors` entry, tensors.json, which says what parts of which tensors these
// have, and files.json, the size and CRC-32C of each; and checkpoint.json, the form, the step and the size and CRC-32C
// of each folder's files.json. It is written under a temporary name, fsynced and renamed (Checkpoints): complete or
// absent.

// Writes one Stateful's folder (made here). Everything is written, but not fsynced, after finish(). RunError naming the
// file and the reason (disk full) from any method.
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
  // `ranks`: the folders of all ranks, whose tensors are read. RunError when there is no state.json or it cannot be
  // parsed.
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
  std::optional<base::SavedTensors> saved_;         // of all ranks, from the first call of tensors() on
  std::map<std::string, host::MappedFile> mapped_;  // during a call of tensors()
};

// Says which form a checkpoint has that this version does not read, with the versions that wrote it; "" where it has
// the present one, or is damaged so that none can be read.
std::string other_form_of(const std::string& checkpoint);
// InputError where it has another form.
void check_form(const std::string& checkpoint);

// The first folder or file of a checkpoint that is missing, foreign (of another step, say) or not as it was written,
// with what was expected and what is there; "" where there is none. Reads every file.
std::string damage_in(const std::string& checkpoint);

// The last file of a checkpoint: says which folders it has, and binds them to each other and to its step.
void write_list(const std::string& checkpoint, int64_t step);

void save_state(const base::Stateful& object, const std::string& directory);
void load_state(base::Stateful& object, const std::string& directory);
// The folder of a model's rank in a checkpoint.
std::string rank_folder(const std::string& checkpoint, const std::string& model, int rank);
// Loads a model on one of `ranks`, whatever their number was when it was saved: its tensors from the folders of all
// ranks; what else they saved from that of this rank or, if that was the same on all of them, of the first one.
// InputError where it was not and their number is another now.
void load_rank(base::Stateful& object, const std::string& checkpoint, const std::string& model, int rank, int ranks);

// The directory of the run that a checkpoint's directory belongs to.
std::string run_of_checkpoint(const std::string& directory);
// Is that a path of a directory that is named like a checkpoint, step-N?
bool is_checkpoint(const std::string& path);
// Iterations complete in that checkpoint, from its name. InputError when the name is not step-N.
int64_t checkpoint_step(const std::string& directory);

}  // namespace collimate::flow

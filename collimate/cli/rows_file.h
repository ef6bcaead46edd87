#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "collimate/host/file_io.h"

namespace collimate::cli {

// A RowsFile is a file of JSON lines that one command writes in order. After an end at any point, the same command can
// continue the file. FILE.command.json beside it records what the lines depend on. Only one process at a time may
// write.
class RowsFile {
 public:
  // Begins the file, or opens the one that this command began and drops a last line that was cut. `command` holds all
  // that the lines depend on, by name. Throws InputError for a file of another command, with the first name that
  // differs, and for one without a record of its command.
  RowsFile(std::string path, const nlohmann::ordered_json& command);

  int64_t lines() const { return lines_; }  // whole lines that the file had when it was opened
  // Appends a line in one write. Throws RunError, naming the file.
  void append(std::string_view line);

 private:
  void keep_whole_lines();

  std::string path_;
  host::FileDescriptor file_;
  int64_t lines_ = 0;
};

}  // namespace collimate::cli

#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "collimate/host/file_io.h"

namespace collimate::cli {

// A file of JSON lines that one command writes in order and, after it was ended at any point, goes on with. Beside FILE
// stands FILE.command.json, which says what the lines are of. One process at a time.
class RowsFile {
 public:
  // `command`: all that the lines depend on, by name. Begins the file, or opens the one that this command began and
  // drops a last line that was cut. InputError for lines of another command, with the first name that differs, or of
  // none.
  RowsFile(std::string path, const nlohmann::ordered_json& command);

  int64_t lines() const { return lines_; }  // that were there, whole
  // Adds a line in one write. RunError naming the file.
  void append(std::string_view line);

 private:
  void keep_whole_lines();

  std::string path_;
  host::FileDescriptor file_;
  int64_t lines_ = 0;
};

}  // namespace collimate::cli

#pragma once

#include <functional>
#include <string>
#include <thread>

#include "collimate/base/immovable.h"
#include "collimate/host/file_io.h"

namespace collimate::host {

// A ChildLines passes on what a child writes to a pipe, a line at a time, from a thread of its own: where several
// processes share a terminal, only one of them may draw on it. Of a line that is written over (\r) only the last text
// is passed on. A last line without an end is passed on in the destructor.
class ChildLines : private base::Immovable {
 public:
  using Sink = std::function<void(const std::string& line)>;  // must not throw
  // Reads `pipe`, which the caller owns and keeps open while this lives.
  explicit ChildLines(int pipe, Sink sink = to_log);
  // Passes on what has been written until now and does not wait for more, even if others still hold the pipe's other
  // end.
  ~ChildLines();

  static void to_log(const std::string& line);  // writes the line as it is

 private:
  void read_until_stopped();
  bool read_some();  // false at the pipe's end, or when there is nothing now
  void pass_on_lines();

  const int pipe_;
  const Sink sink_;
  FileDescriptor stop_;  // an eventfd
  std::string text_;     // read and not yet passed on
  std::thread thread_;
};

}  // namespace collimate::host

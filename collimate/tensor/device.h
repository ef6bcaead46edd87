#pragma once

#include <cstdint>
#include <string_view>

namespace collimate::tensor {

struct Operations;
class Pending;
class Stream;  // operations that run one after another, while the host goes on; each kind of device defines its own

// A Device is where buffers lie and operations run: memory, and a table of operations (operations.h). What lies there
// is read and written by operations alone; the host sees it through HostRead and HostEdit (host_access.h). One object
// per device, which outlives all that is on it. Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;
  virtual const Operations& operations() const = 0;

  // Memory of a Buffer: 64-byte aligned, undefined contents, counted with the tag in force. RunError as of allocate().
  virtual void* take(int64_t bytes) const = 0;
  // Gives it back; with `keep` it may serve the next of that size.
  virtual void give_back(void* block, bool keep) const noexcept = 0;

  // Returns where the host may read, and with `write` change, so many bytes of the device until close(), which carries
  // changes back. The bytes themselves where both share memory. Blocks until what `stream` was given has run.
  virtual void* open(Stream* stream, void* bytes, int64_t count, bool write) const = 0;
  virtual void close(Stream* stream, void* bytes, int64_t count, bool write, void* opened) const noexcept = 0;
  // Work that `stream` is given from here on runs after `work`; errors as of Pending::wait.
  virtual void follow(Stream* stream, const Pending& work, double deadline_seconds) const = 0;
  // Whether operations read the host's memory too, so that what they are given need not be copied.
  virtual bool reads_host_memory() const = 0;
};

// The processor and its memory. Its operations have ended when they return.
const Device& cpu_device();

// The device of an Exec that names none: the CPU, but in programs that link tests/support/checked_device.cpp, which
// defines this function in place of the library's default_device.cpp.
const Device& default_device();

}  // namespace collimate::tensor

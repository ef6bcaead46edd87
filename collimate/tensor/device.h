#pragma once

#include <cstdint>
#include <string_view>

namespace collimate::tensor {

struct Operations;
class Pending;
class Stream;  // a queue of operations that run in order while the host goes on; each kind of device defines its own

// A Device is where buffers lie and operations run: memory, and a table of operations (operations.h). Only operations
// read and write that memory; the host reaches it through HostRead and HostEdit (host_access.h). There is one object
// per device, which outlives everything on it. Thread-safe.
class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;
  virtual const Operations& operations() const = 0;

  // Returns memory for a Buffer: aligned to 64 bytes, of undefined contents, counted under the tag in force. Throws
  // RunError as allocate() does.
  virtual void* take(int64_t bytes) const = 0;
  // Gives the memory back; with `keep` it may be used again for a buffer of that size.
  virtual void give_back(void* block, bool keep) const noexcept = 0;

  // Returns an address where the host may read `count` bytes of the device, and with `write` change them, until
  // close(), which carries the changes back. It is the address of the bytes themselves where host and device share
  // memory. Blocks until everything that `stream` was given has run.
  virtual void* open(Stream* stream, void* bytes, int64_t count, bool write) const = 0;
  virtual void close(Stream* stream, void* bytes, int64_t count, bool write, void* opened) const noexcept = 0;
  // Has all work that `stream` is given from now on run after `work`. Errors are those of Pending::wait.
  virtual void follow(Stream* stream, const Pending& work, double deadline_seconds) const = 0;
  // Returns whether operations can read the host's memory, so that their inputs need not be copied to the device.
  virtual bool reads_host_memory() const = 0;
};

// Returns the processor with its memory. An operation on it has ended when the call returns.
const Device& cpu_device();

// Returns the device of an Exec that names none. It is the CPU, except in programs that link
// tests/support/checked_device.cpp, which defines this function in place of the library's default_device.cpp.
const Device& default_device();

}  // namespace collimate::tensor

#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "collimate/base/read_file.h"

namespace collimate::host {

using base::FileDescriptor;
using base::open_for_reading;
using base::read_file;

// RunError "[path] expected to WRITE, got No space left on device".
[[noreturn]] void throw_io_error(const std::filesystem::path& path, const std::string& action, int error_number);

// Writes all bytes at the file's position, retrying short writes. Throws RunError naming `path`.
void write_fully(int fd, std::span<const std::byte> data, const std::filesystem::path& path);
// Write all bytes at an offset, whatever the file's position, and read all from there. RunErrors as above.
void write_at(int fd, int64_t offset, std::span<const std::byte> data, const std::filesystem::path& path);
void read_at(int fd, int64_t offset, std::span<std::byte> data, const std::filesystem::path& path);
// fsync of a file or directory. Throws RunError.
void sync_file(int fd, const std::filesystem::path& path);
void sync_path(const std::filesystem::path& path);

}  // namespace collimate::host

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

// Throws RunError "[path] expected ACTION, got No space left on device", with the words for `error_number`.
[[noreturn]] void throw_io_error(const std::filesystem::path& path, const std::string& action, int error_number);

// Writes all bytes at the file's position, retrying short writes. Throws RunError naming `path`.
void write_fully(int fd, std::span<const std::byte> data, const std::filesystem::path& path);
// These write all bytes at an offset of the file, or read all from there, and leave the file's position alone. They
// throw RunErrors as above, read_at also at the end of the file.
void write_at(int fd, int64_t offset, std::span<const std::byte> data, const std::filesystem::path& path);
void read_at(int fd, int64_t offset, std::span<std::byte> data, const std::filesystem::path& path);
// These fsync a file or directory. They throw RunError.
void sync_file(int fd, const std::filesystem::path& path);
void sync_path(const std::filesystem::path& path);

}  // namespace collimate::host

#include "collimate/recipe/python_process.h"

#include <span>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/host/checksum.h"
#include "collimate/host/child_lines.h"
#include "collimate/host/child_process.h"
#include "collimate/host/frame_socket.h"
#include "collimate/host/mapped_file.h"
#include "collimate/host/python.h"

namespace collimate::recipe {
namespace {

constexpr double kEndSeconds = 1.0;    // from the end of the process's pipe to the end of the process
constexpr double kStopSeconds = 10.0;  // for a trace to end

host::ChildOptions plugin_child(const std::string& path) {
  host::ChildOptions child = host::python_module(host::python_interpreter(), "plugin_worker", {path});
  child.errors = host::ChildStream::kPipe;
  return child;
}

host::FrameSocket plugin_socket(host::ChildProcess& child) {
  auto [from, to] = child.release_pipes();
  return {std::move(from), std::move(to), "plugin"};
}

}  // namespace

struct PythonProcess::Child {
  explicit Child(const std::string& path)
      : process(plugin_child(path)), lines(process.errors()), socket(plugin_socket(process)) {}

  host::ChildProcess process;
  host::ChildLines lines;
  host::FrameSocket socket;
};

PythonProcess::PythonProcess(const std::string& path, uint32_t crc, double seconds) : path_(path), crc_(crc) {
  start(seconds);
}

PythonProcess::~PythonProcess() = default;

void PythonProcess::start(double seconds) {
  if (host::crc32c(host::MappedFile(path_).bytes()) != crc_)
    throw base::RunError(
        base::expectation(path_, "the file as it was loaded", "another content since", "a new run, in a new process"));
  child_ = std::make_unique<Child>(path_);
  try {
    told_ = ask({{"hello", 1}}, {}, seconds).header;
  } catch (...) {
    child_.reset();
    throw;
  }
}

void PythonProcess::revive() {
  if (!child_) start(kAnswerSeconds);
}

PythonProcess::Answer PythonProcess::exchange(const nlohmann::json& question, const Buffers& buffers, double seconds) {
  if (!child_) throw base::RunError(base::expectation(path_, "its Python process", "none, as it was killed before"));
  std::vector<std::span<const std::byte>> sent;
  for (const std::vector<std::byte>& bytes : buffers) sent.emplace_back(bytes);
  const base::Deadline deadline = base::Deadline::after(seconds);
  try {
    child_->socket.send(question, sent, deadline);
    host::Frame frame = child_->socket.expect_frame(deadline);
    return {std::move(frame.header), std::move(frame.buffers)};
  } catch (const base::RunError& error) {
    std::string got = deadline.expired() ? fmt::format("none within {} s", seconds) : error.what();
    if (const auto ended = child_->process.wait(base::Deadline::after(deadline.expired() ? 0.0 : kEndSeconds)))
      got = "the end of its process with " + ended->description();
    child_->process.kill();
    child_.reset();
    throw base::RunError(base::expectation(path_, "an answer of its Python", got));
  }
}

PythonProcess::Answer PythonProcess::ask(const nlohmann::json& question, const Buffers& buffers, double seconds) {
  Answer answer = exchange(question, buffers, seconds);
  if (answer.header.contains("refused"))
    throw base::InputError(fmt::format("[{}] {}", path_, answer.header.at("refused").get<std::string>()));
  if (answer.header.contains("error"))
    throw base::InputError(
        base::expectation(path_, "a plugin that Python can run", answer.header.at("error").get<std::string>()) +
        answer.header.at("trace").get<std::string>());
  return answer;
}

void PythonProcess::stop() {
  try {
    if (exchange({{"stop", true}}, {}, kStopSeconds).header.contains("stopped")) return;
  } catch (const base::RunError&) {  // it has been killed
  }
  child_.reset();
}

}  // namespace collimate::recipe

#include "collimate/recipe/python_process.h"

#include <span>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/host/python.h"

namespace collimate::recipe {
namespace {

constexpr double kEndSeconds = 1.0;  // from the end of the process's pipe to its own

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

PythonProcess::PythonProcess(const std::string& path)
    : path_(path), child_(plugin_child(path)), lines_(child_.errors()), socket_(plugin_socket(child_)) {}

PythonProcess::Answer PythonProcess::ask(const nlohmann::json& question, const Buffers& buffers, double seconds) {
  std::vector<std::span<const std::byte>> sent;
  for (const std::vector<std::byte>& bytes : buffers) sent.emplace_back(bytes);
  const base::Deadline deadline = base::Deadline::after(seconds);
  Answer answer;
  try {
    socket_.send(question, sent, deadline);
    host::Frame frame = socket_.expect_frame(deadline);
    answer = {std::move(frame.header), std::move(frame.buffers)};
  } catch (const base::RunError& error) {
    std::string got = deadline.expired() ? fmt::format("none within {} s", seconds) : error.what();
    if (const auto ended = child_.wait(base::Deadline::after(deadline.expired() ? 0.0 : kEndSeconds)))
      got = "the end of its process with " + ended->description();
    child_.kill();
    throw base::RunError(base::expectation(path_, "an answer of its Python", got));
  }
  if (answer.header.contains("refused"))
    throw base::InputError(fmt::format("[{}] {}", path_, answer.header.at("refused").get<std::string>()));
  if (answer.header.contains("error"))
    throw base::InputError(
        base::expectation(path_, "a plugin that Python can run", answer.header.at("error").get<std::string>()) +
        answer.header.at("trace").get<std::string>());
  return answer;
}

void PythonProcess::stop() { socket_.send({{"stop", true}}, base::Deadline::after(kAnswerSeconds)); }

}  // namespace collimate::recipe

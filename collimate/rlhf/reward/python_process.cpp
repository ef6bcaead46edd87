#include "collimate/rlhf/reward/python_process.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/base/nearest_path.h"
#include "collimate/host/python.h"
#include "collimate/host/sandbox.h"

namespace collimate::rlhf {
namespace {

using base::Deadline;
using base::expectation;
using nlohmann::json;

host::Sandbox sandbox_of(const PythonCodeSection& options, const PythonFunction& asked) {
  constexpr double kGib = 1 << 30;
  for (const std::string& path : options.readable)
    if (!std::filesystem::exists(path))
      throw base::InputError(expectation("reward.readable", "files and directories that are there", path));
  return {.network = options.network,
          .environment = options.environment,
          .readable = options.readable,
          .files = {asked.file},
          .memory_bytes = static_cast<int64_t>(options.memory_gib.get() * kGib),
          .processes = options.processes,
          .cpu_seconds = options.cpu_seconds};
}

std::string interpreter_of(const PythonCodeSection& options) {
  return options.interpreter->empty() ? host::python_interpreter() : options.interpreter.get();
}

host::ChildOptions child_of(const PythonCodeSection& options, const std::string& module, const PythonFunction& asked) {
  host::ChildOptions child = host::python_module(interpreter_of(options), module, {asked.file, asked.function});
  if (options.sandbox != PythonCodeSection::kNoSandbox) child = host::in_sandbox(child, sandbox_of(options, asked));
  child.errors = host::ChildStream::kPipe;
  return child;
}

// Throws InputError if the answer to the first frame says that the sandbox or the import has failed.
void require_imported(const json& answer, const PythonCodeSection& options, const PythonFunction& asked,
                      const std::string& key) {
  const auto text = [&](const char* name) { return answer.at(name).get<std::string>(); };
  if (answer.contains("refused"))
    throw base::InputError(
        expectation("reward.sandbox", text("refused"), text("got"),
                    text("remedy") + ", or sandbox: none, with which the function may do all that you may"));
  if (!answer.contains("error")) return;
  const std::filesystem::path file = asked.file;
  const bool directory = std::filesystem::is_directory(file);
  const bool lacks_module = text("error").starts_with("ModuleNotFoundError");
  const std::string near = directory                        ? base::nearest_file(file / "reward.py", {".py"})
                           : !std::filesystem::exists(file) ? base::nearest_file(file, {".py"})
                           : !lacks_module
                               ? ""
                               : fmt::format("installing it for {}, or interpreter: PYTHON in its entry, which has it",
                                             interpreter_of(options));
  throw base::InputError(
      expectation("reward." + key, fmt::format("{} to define {}", asked.file, asked.function), text("error"), near) +
      text("trace"));
}

// A Barrier is what Python says where the sandbox keeps a function from something, and what to do about it.
struct Barrier {
  std::string_view said, remedy;
};
constexpr std::string_view kNoNetwork = "network: true in its entry, without which the sandbox has no network";
constexpr Barrier kBarriers[] = {
    {"Read-only file system",
     "printing it, as the function may change no file in the sandbox, or sandbox: none in its entry"},
    {"name resolution", kNoNetwork},
    {"Network is unreachable", kNoNetwork},
    {"FileNotFoundError: ",
     "readable: [FILE] in its entry if the file exists, as the sandbox shows the function few files"},
    {"MemoryError", "a larger memory_gib in its entry, or a function that needs less memory"}};

// These limits are for a peer that may write anything, as slowly as it likes.
constexpr host::FrameLimits kAnswerLimits{
    .header_bytes = uint64_t{64} << 20, .buffers = 0, .total_bytes = 0, .bytes_renew = false};

host::FrameSocket connect(host::ChildProcess& child) {
  auto [from, to] = child.release_pipes();
  return {std::move(from), std::move(to), "reward worker", kAnswerLimits};
}

}  // namespace

PythonFunction python_function(const std::string& target, const std::string& usual) {
  const size_t colon = target.rfind(".py:");
  if (colon == std::string::npos) return {target, usual};
  return {target.substr(0, colon + 3), target.substr(colon + 4)};
}

std::string with_remedy(const std::string& error, const PythonCodeSection& options) {
  if (options.sandbox == PythonCodeSection::kNoSandbox) return error;
  for (const Barrier& barrier : kBarriers)
    if (error.find(barrier.said) != std::string::npos && !(options.network && barrier.remedy == kNoNetwork))
      return fmt::format("{}; try {}", error, barrier.remedy);
  return error;
}

void PythonCodeSection::section_demands(const std::string& path) const {
  if (sandbox != kNoSandbox) return;
  const std::string expected = fmt::format("nothing with sandbox: {}, which limits nothing", kNoSandbox);
  if (network) network.item_refuse(path, expected);
  if (!environment->empty()) environment.item_refuse(path, expected);
  if (!readable->empty()) readable.item_refuse(path, expected);
}

void PrintedLines::pass_on(const std::string& line) {
  const int64_t before = left_.fetch_sub(static_cast<int64_t>(line.size()) + 1);
  if (before > 0)
    host::ChildLines::to_log(line.substr(0, static_cast<size_t>(before)));
  else if (!told_.exchange(true))
    base::log_warning("{}: the function printed more than {} KiB in one call; what is beyond is left out", key_,
                      kMostBytes >> 10);
}

PythonProcess::PythonProcess(const PythonCodeSection& options, const std::string& module, const PythonFunction& asked,
                             const std::string& key, const Waiting& waiting)
    : printed_("reward." + key),
      child_(child_of(options, module, asked)),
      lines_(child_.errors(), [this](const std::string& line) { printed_.pass_on(line); }),
      socket_(connect(child_)) {
  facts_ = parsed(imported(options, asked, key, waiting), [&](const json& answer) {
    require_imported(answer, options, asked, key);
    return answer;
  });
}

json PythonProcess::imported(const PythonCodeSection& options, const PythonFunction& asked, const std::string& key,
                             const Waiting& waiting) {
  try {
    return answer_to(json{{"hello", 1}}, options.start_timeout_seconds, waiting);
  } catch (const base::RunError& error) {
    throw base::RunError(
        expectation("reward." + key, fmt::format("{} to be imported", asked.file), error.what(),
                    "less work outside of the function, a larger start_timeout_seconds in its entry, or "
                    "another interpreter"));
  }
}

json PythonProcess::answer_to(const json& request, double seconds, const Waiting& waiting) {
  constexpr double kLookSeconds = 0.1, kEndSeconds = 1.0;  // the process may take kEndSeconds to end after its pipe
  const Deadline deadline = Deadline::after(seconds);
  try {
    socket_.send(request, deadline);
    while (!socket_.readable(Deadline::after(std::min(kLookSeconds, deadline.remaining_milliseconds() / 1000.0))) &&
           !deadline.expired())
      waiting();
    return socket_.expect_frame(deadline).header;
  } catch (const base::RunError&) {
    if (const auto ended = child_.wait(Deadline::after(deadline.expired() ? 0.0 : kEndSeconds)))
      throw base::RunError(fmt::format("the function's process ended with {}", ended->description()));
    if (deadline.expired()) throw base::RunError(fmt::format("no answer within {} s", seconds));
    throw;
  }
}

void PythonProcess::refuse_form(const std::string& problem) {
  throw base::RunError(fmt::format("the function's process gave an answer of another form: {}", problem));
}

}  // namespace collimate::rlhf

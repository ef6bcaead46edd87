#include "collimate/host/hub_download.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/host/base_model.h"
#include "collimate/host/python.h"

namespace collimate::host {
namespace {

using nlohmann::json;

std::string read_all(int pipe) {
  std::string text;
  char chunk[1 << 12];
  while (true) {
    const ssize_t count = ::read(pipe, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(chunk, static_cast<size_t>(count));
  }
}

std::string last_line(std::string text) {
  while (text.ends_with('\n')) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

// Returns the answer of collimate.hub_download for the model that is called `name`.
json answer_of(const std::string& name, const HubName& parts) {
  ChildOptions options = python_module(python_interpreter(), "hub_download", {parts.model, parts.revision});
  options.input = ChildStream::kNull;
  ChildProcess child(options);
  const std::string line = last_line(read_all(child.output()));
  const ExitStatus status = *child.wait(base::Deadline::never());
  json answer = json::parse(line, nullptr, false);
  if (!status.ok() || !answer.is_object())
    throw base::RunError(base::expectation("--download " + name, "collimate.hub_download to say what it did",
                                           status.ok() ? "'" + line + "'" : status.description()));
  return answer;
}

// Returns the directory of a name, after downloading it where that is asked for and needed.
std::string fetched(const std::string& name, bool download) {
  std::error_code ignored;
  const std::string held = model_directory(name);
  const std::optional<HubName> parts = hub_name(name);
  if (!download || held != name || !parts || std::filesystem::exists(name, ignored)) return held;
  base::log_info("downloading {} into {}", name, hub_cache().string());
  const json answer = answer_of(name, *parts);
  if (answer.empty()) return model_directory(name);
  const std::string error = base::expectation("--download " + name, answer.at("expected"), answer.at("got"),
                                              answer.at("remedy").get<std::string>());
  if (answer.at("input").get<bool>()) throw base::InputError(error);
  throw base::RunError(error);
}

}  // namespace

std::string model_directory(const std::string& name, bool download) {
  std::string found = fetched(name, download);
  if (download && holds_adapters(found)) fetched(base_model_name(found), download);
  return found;
}

}  // namespace collimate::host

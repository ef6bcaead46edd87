#include "collimate/cli/program.h"

#include <fmt/ranges.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "collimate/base/edit_distance.h"
#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/verbs.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/aten_threads.h"

namespace collimate::cli {
namespace {

int run(const Arguments& all) {
  const Arguments words = after_plugins(all);
  if (words.empty()) return help({});
  std::string name = words[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version") name = "version";
  std::vector<std::string> known;
  for (const Verb& verb : verbs()) {
    if (name == verb.name) return verb.run({words.begin() + 1, words.end()});
    known.emplace_back(verb.name);
  }
  const std::string near = base::nearest(name, known);
  throw base::InputError(base::expectation("collimate", fmt::format("one of {}", fmt::join(known, ", ")),
                                           "\"" + name + "\"", "collimate " + (near.empty() ? "help" : near)));
}

// Flushes standard output and returns whether all that was printed arrived. If not, prints an error to stderr.
bool output_arrived() {
  const int failed = std::fflush(stdout) == 0 ? 0 : errno;
  if (failed == 0 && std::ferror(stdout) == 0) return true;
  std::fprintf(stderr, "%s\n",
               base::expectation("collimate", "standard output that takes all that is printed",
                                 failed == 0 ? "an error" : std::strerror(failed))
                   .c_str());
  return false;
}

// Returns the message of an error of the file system that no place of its own has told, in the form of all others.
std::string message_of(const std::filesystem::filesystem_error& error) {
  return base::expectation(error.path1().empty() ? "collimate" : error.path1().string(), "a path that can be reached",
                           error.code().message(), "another path, or a user who may read and write there");
}

}  // namespace

int run_program(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the file size limit then fails with an error
  tensor::install_aten_allocator();
  tensor::use_one_aten_thread();
  if (const std::string warning = base::test_hook_warning(); !warning.empty())
    std::fprintf(stderr, "%s\n", warning.c_str());
  try {
    const int code = run({argv + 1, argv + argc});
    return output_arrived() || code != 0 ? code : 1;
  } catch (const base::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  } catch (const std::filesystem::filesystem_error& error) {
    std::fprintf(stderr, "%s\n", message_of(error).c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "[collimate] %s\n", error.what());
    return 1;
  }
}

}  // namespace collimate::cli

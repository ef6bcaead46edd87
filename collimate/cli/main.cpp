#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>

#include "collimate/base/error.h"
#include "collimate/base/fault.h"
#include "collimate/cli/verbs.h"
#include "collimate/tensor/allocator.h"
#include "collimate/tensor/aten_threads.h"

namespace {

int run(const collimate::cli::Arguments& words) {
  namespace cli = collimate::cli;
  if (words.empty()) return cli::help({});
  std::string name = words[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version") name = "version";
  std::string known;
  for (const cli::Verb& verb : cli::verbs()) {
    if (name == verb.name) return verb.run({words.begin() + 1, words.end()});
    known += (known.empty() ? "" : ", ") + std::string(verb.name);
  }
  throw collimate::base::InputError(
      collimate::base::expectation("collimate", "one of " + known, "\"" + name + "\"", "collimate help"));
}

// Whether all that was printed arrived; says so where it did not. Some of it waits in the buffer until here.
bool output_arrived() {
  const int failed = std::fflush(stdout) == 0 ? 0 : errno;
  if (failed == 0 && std::ferror(stdout) == 0) return true;
  std::fprintf(stderr, "%s\n",
               collimate::base::expectation("collimate", "standard output that takes all that is printed",
                                            failed == 0 ? "an error" : std::strerror(failed))
                   .c_str());
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a write beyond the limit fails instead, and says so
  collimate::tensor::install_aten_allocator();
  collimate::tensor::use_one_aten_thread();
  if (const std::string warning = collimate::base::test_hook_warning(); !warning.empty())
    std::fprintf(stderr, "%s\n", warning.c_str());
  try {
    const int code = run({argv + 1, argv + argc});
    return output_arrived() || code != 0 ? code : 1;
  } catch (const collimate::base::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "[collimate] %s\n", error.what());
    return 1;
  }
}

#include <cstdio>
#include <exception>

#include "collimate/base/error.h"
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

}  // namespace

int main(int argc, char** argv) {
  collimate::tensor::install_aten_allocator();
  collimate::tensor::use_one_aten_thread();
  try {
    return run({argv + 1, argv + argc});
  } catch (const collimate::base::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.exit_code();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "[collimate] %s\n", error.what());
    return 1;
  }
}

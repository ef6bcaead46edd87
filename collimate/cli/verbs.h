#pragma once

#include <string>
#include <vector>

namespace collimate::cli {

// A Verb is one verb of the command line. `run` takes the arguments behind the verb and returns the exit code. Errors
// are exceptions of base/error.h; main prints them and takes their exit code.
using Arguments = std::vector<std::string>;
struct Verb {
  const char* name;
  const char* summary;
  int (*run)(const Arguments& arguments);
};

// Returns the list of all verbs, in the order in which help prints them.
const std::vector<Verb>& verbs();

// Returns the benchmarks that `bench NAME` runs.
const std::vector<Verb>& benches();

// Returns the topics that `help TOPIC` knows beside verbs: pages, lists, config keys and sections.
std::vector<std::string> help_topics();

int init(const Arguments& arguments);
int train(const Arguments& arguments);
int pipeline(const Arguments& arguments);
int check(const Arguments& arguments);
int generate(const Arguments& arguments);
int eval(const Arguments& arguments);
int chat(const Arguments& arguments);
int serve(const Arguments& arguments);
int report(const Arguments& arguments);
int worker(const Arguments& arguments);
int plan(const Arguments& arguments);
int simulate(const Arguments& arguments);
int calibrate(const Arguments& arguments);
int weights(const Arguments& arguments);
int bench(const Arguments& arguments);
int completion(const Arguments& arguments);
int version(const Arguments& arguments);
int help(const Arguments& arguments);

}  // namespace collimate::cli

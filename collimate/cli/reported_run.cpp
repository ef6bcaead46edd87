#include "collimate/cli/reported_run.h"

#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "collimate/base/error.h"
#include "collimate/base/log.h"
#include "collimate/host/atomic_file.h"
#include "collimate/recipe/run_files.h"
#include "collimate/report/report.h"

namespace collimate::cli {
namespace {

namespace fs = std::filesystem;

// Writes the run's page. Parts that cannot be read are named on the page and in warnings.
void write_report(const fs::path& run) {
  std::vector<std::string> unreadable;
  host::write_file_atomically(run / recipe::kReportFile, report::render_report(run, &unreadable));
  for (const std::string& problem : unreadable) base::log_warning("{}", problem);
}

// Writes the page if the directory holds a file that says why a run stopped. Without one the run did not begin, or its
// directory was cleared for another run.
void try_to_write_report(const fs::path& run) {
  if (!fs::exists(run / recipe::kStoppedFile)) return;
  try {
    write_report(run);
    base::log().show("report: " + (run / recipe::kReportFile).string());
  } catch (const std::exception& error) {
    base::log_warning("the report was not written: {}", error.what());
  }
}

}  // namespace

recipe::TrainOutcome train_and_report(const recipe::Config& config, const recipe::TrainCall& call) {
  try {
    const recipe::TrainOutcome outcome = recipe::train(config, call);
    write_report(call.output);
    return outcome;
  } catch (const base::InputError&) {
    throw;
  } catch (const std::exception&) {
    try_to_write_report(call.output);
    throw;
  }
}

}  // namespace collimate::cli

#pragma once

#include "collimate/recipe/train.h"

namespace collimate::cli {

// Calls recipe::train, then writes the run's page to OUTPUT/report.html. A run that a guard, an error or a signal
// stopped gets a page, too, which says why; wrong input gets none. Throws what train throws. If the page cannot be
// written after such an error, that is only logged as a warning.
recipe::TrainOutcome train_and_report(const recipe::Config& config, const recipe::TrainCall& call);

}  // namespace collimate::cli

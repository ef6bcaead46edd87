#pragma once

#include "collimate/recipe/train.h"

namespace collimate::cli {

// recipe::train, and the run's page in OUTPUT/report.html: also of a run that a guard, an error or a signal stopped,
// whose page says why. What train throws comes out of here. Wherever the page cannot be read or written after an error,
// that is a warning, and the error stays the one that is told.
recipe::TrainOutcome train_and_report(const recipe::Config& config, const recipe::TrainCall& call);

}  // namespace collimate::cli

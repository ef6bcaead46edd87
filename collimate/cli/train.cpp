#include "collimate/recipe/train.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "collimate/base/log.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/auto_placement.h"
#include "collimate/cli/check.h"
#include "collimate/cli/process.h"
#include "collimate/host/atomic_file.h"
#include "collimate/recipe/run_directory.h"
#include "collimate/report/report.h"

namespace collimate::cli {

int train(const Arguments& arguments) {
  CLI::App app{"trains what CONFIG.yaml says", "train"};
  std::string config_path;
  std::vector<std::string> sets;
  recipe::TrainCall call;
  bool dry_run = false, json = false;
  app.add_option("CONFIG", config_path, "YAML file (collimate help KEY explains its keys)")->required();
  app.add_option("--set", sets, "override one key: a.b=value")->take_all();
  app.add_option("--output", call.output, "the run's directory; default: runs/<config's name>");
  app.add_option("--resume", call.resume,
                 "auto, never, or the run or checkpoint (DIR/checkpoints/step-N) to go on from");
  app.add_option("--replay", call.replay, "journal of a run of this config: its rewards are used, none is asked");
  app.add_flag("--dry-run", dry_run, "check everything, train nothing: what collimate check prints");
  app.add_flag("--json", json, "the run's summary as one JSON document");
  if (!parse(app, arguments)) return 0;

  if (call.output.empty()) call.output = "runs/" + std::filesystem::path(config_path).stem().string();
  recipe::Config config = recipe::load(config_path, sets);
  choose_placement(config, config_path, sets, recipe::run_to_resume(call.resume, call.output));
  if (dry_run) {
    show_check(config, json);
    return 0;
  }
  call.note = [](const std::string& line) { base::log().show(line); };
  call.stop = &stop_on_signals();
  const recipe::TrainOutcome outcome = recipe::train(config, call);
  const std::filesystem::path page = std::filesystem::path(call.output) / "report.html";
  host::write_file_atomically(page, report::render_report(call.output));
  if (json) {
    nlohmann::ordered_json document = outcome.summary;
    document["output"] = call.output;
    document["model"] = call.output + "/model";
    document["report"] = page.string();
    print_json(document);
    return 0;
  }
  fmt::print("{} iterations in {:.1f} s; model: {}/model; report: {}\n", outcome.iterations, outcome.seconds,
             call.output, page.string());
  return 0;
}

}  // namespace collimate::cli

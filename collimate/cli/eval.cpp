#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "collimate/base/config.h"
#include "collimate/base/error.h"
#include "collimate/base/terminal.h"
#include "collimate/cli/arguments.h"
#include "collimate/cli/eval_table.h"
#include "collimate/cli/flag_names.h"
#include "collimate/cli/judges.h"
#include "collimate/cli/layout_options.h"
#include "collimate/generate/sampling_options.h"
#include "collimate/host/atomic_file.h"
#include "collimate/plan/show/columns.h"
#include "collimate/recipe/data.h"
#include "collimate/recipe/evaluation/of_models.h"
#include "collimate/report/evaluation_page.h"
#include "collimate/rlhf/modules/loading_options.h"

namespace collimate::cli {
namespace {

struct Drawing : generate::SamplingOptions {
  Drawing() : SamplingOptions(0.0) {}
};

struct Loading : base::Section {
  rlhf::ComputeOption compute{this};
  rlhf::LatentCacheOption latent_cache{this};
  rlhf::ChatTemplateOptions chat{this};
};

constexpr const char *kPage = ".html", *kRows = ".jsonl";

CLI::Validator page_or_rows() {
  return {[](const std::string& file) {
            const bool known = file.ends_with(kPage) || file.ends_with(kRows);
            return known ? "" : fmt::format("expected a file that ends in {} or {}, got {}", kPage, kRows, file);
          },
          ""};
}

struct EvalCall {
  std::vector<std::string> models, rewards, outputs;
  std::string data, measured;
  Drawing drawing;
  Loading loading;
  ScoringLayoutOptions layout;
  rlhf::RowSection rows;
  int64_t samples = 1, examples = 0, max_tokens = generate::SamplingParams().max_tokens, seed = 0;
  bool download = false, json = false;
};

void add_outputs(CLI::App& app, EvalCall& call) {
  app.add_flag("--json", call.json, "print one JSON document");
  app.add_option(
         "--output", call.outputs,
         "also write a file: PAGE.html has the table and samples, ROWS.jsonl a line for each completion; may be "
         "given for both")
      ->expected(1)
      ->take_all()
      ->check(page_or_rows());
}

bool read_arguments(const Arguments& arguments, EvalCall& call) {
  CLI::App app{
      "measures models on data: completions that rewards judge (accuracy, pass@k, mean@n, best@n, maj@n), perplexity, "
      "the accuracy of pairs, or multiple choice, each with its standard error; tokens are drawn as the options say, "
      "not as the models' generation_config.json does",
      "eval"};
  app.add_option("MODEL", call.models,
                 "the directories of the models; with several, the difference of each from the first is shown")
      ->required();
  add_download_flag(app, call.download);
  app.add_option("--data", call.data,
                 "a file of rows, in any shape that training reads, or '{path: FILE, columns: {…}}'")
      ->required();
  app.add_option("--reward", call.rewards, kRewardHelp)->expected(1)->take_all();
  app.add_option("-n,--n", call.samples, "how many completions each prompt gets")
      ->check(at_least(1))
      ->capture_default_str();
  const auto kinds = words_of(recipe::MeasureKind());
  name_choices(*app.add_option("--measure", call.measured, "what to measure; by default the rows' columns decide"),
               {std::begin(kinds.words), std::end(kinds.words)});
  app.add_option("--examples", call.examples,
                 "how many rows of the data are measured, from the first on; 0 measures all")
      ->check(at_least(0))
      ->capture_default_str();
  app.add_option("--max-tokens", call.max_tokens, "most tokens of a completion")
      ->check(at_least(1))
      ->capture_default_str();
  app.add_option("--seed", call.seed, "seed of the draws")->check(at_least(0))->capture_default_str();
  add_flags(app, call.drawing);
  add_flags(app, call.loading);
  add_flags(app, call.layout);
  add_flags(app, call.rows);
  add_outputs(app, call);
  if (!parse(app, arguments)) return false;
  for (const char* ending : {kPage, kRows})
    if (std::ranges::count_if(call.outputs, [&](const std::string& file) { return file.ends_with(ending); }) > 1)
      throw base::InputError(base::expectation("--output", fmt::format("one file that ends in {}", ending), "several"));
  call.drawing.params(call.max_tokens);  // throws for values that do not fit together, naming the flag
  return true;
}

// Returns the output that ends in `ending`, or "".
std::string output_of(const EvalCall& call, const std::string& ending) {
  const auto found =
      std::ranges::find_if(call.outputs, [&](const std::string& file) { return file.ends_with(ending); });
  return found == call.outputs.end() ? "" : *found;
}

recipe::EvaluationCall asked(const EvalCall& call) {
  recipe::EvaluationCall asked{.data = name_or_map(call.data, "--data"),
                               .section = base::to_json(call.drawing.section_value()),
                               .completion_tokens = call.max_tokens,
                               .seed = call.seed,
                               .compute = call.loading.compute,
                               .latent_cache = call.loading.latent_cache,
                               .reduction_chunks = call.layout.reduction_chunks,
                               .layout = call.layout.config(),
                               .chat_template = call.loading.chat.choice,
                               .chat_template_kwargs = call.loading.chat.kwargs,
                               .rows = call.rows.choices(),
                               .names = flag_names(),
                               .lines = !output_of(call, kRows).empty()};
  if (!call.measured.empty()) asked.measured = words_of(recipe::MeasureKind()).parse("--measure", call.measured);
  asked.section["samples_per_prompt"] = call.samples;
  asked.section["examples"] = call.examples;
  asked.section["reward"] = rewards_of(call.rewards);
  return asked;
}

std::vector<NamedFile> data_files(const recipe::EvaluationCall& what) {
  std::vector<NamedFile> files;
  for (const text::DataSource& source : recipe::data_sources(what.data, "--data"))
    files.push_back({"--data", source.path});
  return files;
}

void write_rows(const std::vector<recipe::ModelEvaluation>& models, const std::string& path) {
  std::string text;
  for (const recipe::ModelEvaluation& made : models)
    for (const nlohmann::ordered_json& columns : made.lines) {
      nlohmann::ordered_json line = {{"model", made.model}};
      for (const auto& [name, value] : columns.items()) line[name == "model" ? "data_model" : name] = value;
      text += line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    }
  host::write_file_atomically(path, text);
}

}  // namespace

int eval(const Arguments& arguments) {
  EvalCall call;
  if (!read_arguments(arguments, call)) return 0;
  recipe::EvaluationCall what = asked(call);
  const std::string page = output_of(call, kPage), rows = output_of(call, kRows);
  check_outputs({{"--output", page}, {"--output", rows}}, data_files(what));
  const std::vector<recipe::ModelEvaluation> models = recipe::evaluate_each(call.models, what, call.download);
  const nlohmann::ordered_json document = recipe::evaluation_document(what, models);
  if (!page.empty()) host::write_file_atomically(page, report::render_evaluation(document));
  if (!rows.empty()) write_rows(models, rows);
  if (call.json) {
    print_json(document);
  } else {
    const int columns = base::terminal_columns(STDOUT_FILENO, plan::kTextColumns);
    for (const std::string& line : evaluation_table(document, columns)) fmt::print("{}\n", line);
  }
  return 0;
}

}  // namespace collimate::cli

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "collimate/report/html.h"
#include "collimate/report/sections.h"
#include "collimate/report/words.h"

namespace collimate::report {

namespace {

constexpr size_t kMostSamples = 8;

// Returns the first sample of each prompt, in file order: nothing is picked by its reward.
std::vector<const Sample*> first_of_each_prompt(const SampleFile& file) {
  std::vector<const Sample*> out;
  std::map<std::string_view, bool> seen;
  for (const Sample& sample : file.samples)
    if (seen.emplace(sample.prompt, true).second) out.push_back(&sample);
  return out;
}

const Sample* with_prompt(const SampleFile& file, const std::string& prompt) {
  const auto found = std::find_if(file.samples.begin(), file.samples.end(),
                                  [&](const Sample& sample) { return sample.prompt == prompt; });
  return found == file.samples.end() ? nullptr : &*found;
}

// Returns whether the sample's text is a completion, which is drawn anew in each file; other texts are the data's own.
bool is_drawn(const Sample& sample) { return sample.texts.front().label == "completion"; }

// Returns "up" where a reward or a loss has become better, "down" where worse, else "flat". The page shows it by colour
// and, as not all see colours, by the words beside it.
const char* direction(const SampleText& before, const SampleText& after) {
  const int better = after.measure == "reward" ? 1 : after.measure == "loss" ? -1 : 0;
  const double change = better * (after.value - before.value);
  return change > 0 ? "up" : change < 0 ? "down" : "flat";
}

std::string chip(const char* kind, const std::string& words) {
  return fmt::format(R"(<span class="chip {}">{}</span>)", kind, escape(words));
}

std::string value_chip(const SampleText& text, const char* kind) {
  if (std::isnan(text.value)) return "";
  return chip(kind, measure_words(text.measure) + " " + short_number(text.value));
}

std::string column(const std::string& label, const std::string& chips, const std::string& text) {
  return fmt::format(R"(<div><span class="label">{}</span>{}<div class="text" tabindex="0">{}</div></div>)",
                     escape(label), chips, text.empty() ? "(nothing)" : escape(text));
}

// Draws a sample with its prompt; `rows` are rows of columns, one below the other.
std::string card(const Sample& sample, const std::vector<std::string>& rows) {
  const auto part = [](const char* label, const std::string& text) {
    return fmt::format(R"(<div><div class="label">{}</div><div class="text">{}</div></div>)", label, escape(text));
  };
  std::string body;
  for (const std::string& row : rows)
    if (!row.empty()) body += R"(<div class="pair">)" + row + "</div>";
  return fmt::format(R"(<article class="sample"><header class="pair">{}{}</header>{}</article>)",
                     part("prompt", sample.prompt), sample.expected.empty() ? "" : part("expected", sample.expected),
                     body);
}

std::string drawn_columns(const Sample& before, const Sample& after, const SampleFiles& files) {
  const SampleText &first = before.texts.front(), &last = after.texts.front();
  return column(fmt::format("before, iteration {}", files.first.step), value_chip(first, "flat"), first.text) +
         column(fmt::format("after, iteration {}", files.last.step), value_chip(last, direction(first, last)),
                last.text);
}

const char* data_label(const SampleText& text) {
  return text.label == "target"   ? "the data's answer"
         : text.label == "chosen" ? "chosen, in the data"
                                  : "rejected, in the data";
}

std::string answer_column(const std::string& whose, const std::optional<std::string>& answer) {
  return answer ? column(whose, "", *answer) : "";
}

// Shows both values, where both are there, else the last one.
std::string change_chip(const SampleText& first, const SampleText& last) {
  if (std::isnan(first.value) || std::isnan(last.value)) return value_chip(last, "flat");
  return chip(direction(first, last), fmt::format("{} {} → {}", measure_words(last.measure), short_number(first.value),
                                                  short_number(last.value)));
}

// Draws the texts of the data, each with its first and last value.
std::string data_columns(const Sample& before, const Sample& after) {
  std::string out;
  for (size_t i = 0; i < std::min(before.texts.size(), after.texts.size()); ++i) {
    const SampleText& last = after.texts[i];
    out += column(data_label(last), change_chip(before.texts[i], last), last.text);
  }
  return out;
}

std::string model_columns(const Sample& before, const Sample& after, const SampleFiles& files) {
  return answer_column(fmt::format("the model's answer before, iteration {}", files.first.step), before.model_answer) +
         answer_column(fmt::format("the model's answer after, iteration {}", files.last.step), after.model_answer);
}

std::string paired(const SampleFiles& files) {
  std::string out;
  size_t count = 0;
  for (const Sample* after : first_of_each_prompt(files.last)) {
    const Sample* before = with_prompt(files.first, after->prompt);
    if (before == nullptr || count++ >= kMostSamples) continue;
    if (is_drawn(*after))
      out += card(*after, {drawn_columns(*before, *after, files)});
    else
      out += card(*after, {data_columns(*before, *after), model_columns(*before, *after, files)});
  }
  return out;
}

std::string listed(const SampleFile& file, const char* when) {
  std::string out = "<div>";
  size_t count = 0;
  for (const Sample* sample : first_of_each_prompt(file)) {
    if (count++ >= kMostSamples / 2) break;
    std::string columns;
    for (const SampleText& text : sample->texts)
      columns += column(is_drawn(*sample) ? fmt::format("{}, iteration {}", when, file.step) : data_label(text),
                        value_chip(text, "flat"), text.text);
    out += card(*sample, {columns, answer_column(fmt::format("the model's answer {}, iteration {}", when, file.step),
                                                 sample->model_answer)});
  }
  return out + "</div>";
}

const SampleFile& newest(const SampleFiles& files) { return files.last.samples.empty() ? files.first : files.last; }

// Draws one prompt in every run: its completions side by side, or the data's texts with the value that each run gives
// them.
std::string compared(const std::vector<const Sample*>& samples, const std::vector<RunData>& runs) {
  std::string columns;
  const Sample& any = *samples.front();
  if (is_drawn(any)) {
    for (size_t r = 0; r < runs.size(); ++r) {
      const SampleText& text = samples[r]->texts.front();
      columns += column(fmt::format("{}, iteration {}", runs[r].name, newest(runs[r].samples).step),
                        value_chip(text, "flat"), text.text);
    }
    return card(any, {columns});
  }
  for (size_t i = 0; i < any.texts.size(); ++i) {
    std::string chips;
    for (size_t r = 0; r < runs.size(); ++r) {
      if (i >= samples[r]->texts.size() || std::isnan(samples[r]->texts[i].value)) continue;
      const SampleText& text = samples[r]->texts[i];
      chips +=
          chip("flat", fmt::format("{}: {} {}", runs[r].name, measure_words(text.measure), short_number(text.value)));
    }
    columns += column(data_label(any.texts[i]), chips, any.texts[i].text);
  }
  std::string answers;
  for (size_t r = 0; r < runs.size(); ++r)
    answers += answer_column(fmt::format("the answer of {}, iteration {}", runs[r].name, newest(runs[r].samples).step),
                             samples[r]->model_answer);
  return card(any, {columns, answers});
}

const char* note_of(const SampleFiles& files, bool drawn) {
  if (!files.first.held_out && !drawn)
    return "Rows of the training data, as none are held out. The numbers are those before the first and after the last "
           "iteration.";
  if (!files.first.held_out)
    return "Prompts of the first and of the last file of training samples, in the order of the last.";
  return drawn
             ? "The same prompts at the first and the last evaluation, in the order of the file."
             : "Held-out rows in the order of the file. The numbers are those of the first and of the last evaluation.";
}

std::string section(const SampleFiles& files) {
  const SampleFile& shown = newest(files);
  if (shown.samples.empty()) return "";
  std::string body = paired(files);
  std::string note = note_of(files, is_drawn(shown.samples.front()));
  if (body.empty()) {
    body = R"(<div class="charts">)" + listed(files.first, "before") + listed(files.last, "after") + "</div>";
    note = "The first prompts of the first and of the last file of samples, in the order of the files.";
  }
  return fmt::format(R"(<h2>Samples before and after{}</h2><p class="soft">{}</p>{})",
                     files.measure.empty() ? "" : ": " + escape(files.measure), note, body);
}

}  // namespace

std::string draw_samples(const RunData& run) {
  std::string out = section(run.samples);
  for (const SampleFiles& files : run.measured) out += section(files);
  return out;
}

std::string draw_samples(const std::vector<RunData>& runs) {
  std::string body;
  size_t count = 0;
  for (const Sample* sample : first_of_each_prompt(newest(runs.front().samples))) {
    std::vector<const Sample*> same;
    for (const RunData& run : runs) {
      const Sample* found = with_prompt(newest(run.samples), sample->prompt);
      if (found != nullptr && is_drawn(*found) == is_drawn(*sample)) same.push_back(found);
    }
    if (same.size() == runs.size() && count++ < kMostSamples) body += compared(same, runs);
  }
  if (body.empty()) return "";
  return R"(<h2>The same prompts in each run</h2><p class="soft">From the last file of samples of each run.</p>)" +
         body;
}

}  // namespace collimate::report

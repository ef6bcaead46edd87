#include "collimate/plan/show/plan_html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "collimate/base/html.h"
#include "collimate/plan/digits.h"
#include "collimate/plan/show/comparison.h"
#include "collimate/plan/show/plan_pictures.h"

namespace collimate::plan {
namespace {

using base::html_escape;

constexpr const char* kStyle = R"css(
* { box-sizing:border-box; }
body { margin:0; background:var(--paper); color:var(--ink); font:15px/1.5 system-ui, "DejaVu Sans", sans-serif; }
main { max-width:1180px; margin:0 auto; padding:28px 20px 60px; }
h1 { font-size:26px; margin:0 0 4px; } h2 { font-size:19px; margin:36px 0 8px; } p { margin:4px 0 10px; } .soft { color:var(--soft); }
figure { margin:0; background:var(--panel); border:1px solid var(--line); border-radius:10px; padding:12px 14px; }
.scroll { overflow-x:auto; } :focus-visible { outline:2px solid var(--c0); outline-offset:2px; }
figure .scroll svg { display:block; width:100%; min-width:1000px; height:auto; }
svg text { font:12px system-ui, "DejaVu Sans", sans-serif; fill:var(--soft); } svg text.on { fill:var(--on); pointer-events:none; }
.grid { stroke:var(--line); } .limit { stroke:var(--bad); stroke-width:2.5; }
.legend { display:flex; flex-wrap:wrap; gap:4px 16px; margin:0 0 10px; padding:0; list-style:none; font-size:13px; color:var(--soft); }
.key { width:12px; height:12px; margin-right:6px; vertical-align:-1px; }
table { border-collapse:collapse; min-width:860px; font-size:14px; font-variant-numeric:tabular-nums; }
td, th { padding:5px 14px 5px 0; border-bottom:1px solid var(--line); text-align:left; vertical-align:top; }
th { color:var(--soft); font-weight:600; } .n { text-align:right; white-space:nowrap; }
dt { font-weight:600; margin-top:8px; } dd { margin:0; }
@media (min-width:900px) { .narrow { display:none; } }
)css";

bool prices_are_given(const Cluster& cluster) {
  return std::all_of(cluster.groups.begin(), cluster.groups.end(),
                     [](const NodeGroup& group) { return group.gpu.price_given; });
}

std::string head(std::initializer_list<const char*> words, size_t numbers_from, size_t numbers_to) {
  std::string out = R"(<div class="scroll" tabindex="0"><table><tr>)";
  size_t column = 0;
  for (const char* word : words) {
    const bool number = column >= numbers_from && column < numbers_to;
    out += fmt::format(R"(<th scope="col"{}>{}</th>)", number ? R"( class="n")" : "", word);
    ++column;
  }
  return out + "</tr>\n";
}

std::string calls_table(const Plan& plan) {
  std::string rows = head(
      {"function", "devices", "seconds", "compute", "decode", "tensor", "bubble", "update", "fixed", "layout"}, 2, 9);
  for (const Call& call : plan.calls) {
    if (call.devices.empty()) continue;
    const PhaseTime& t = call.time;
    rows += fmt::format("<tr><td>{}.{}</td><td>{}</td>", html_escape(call.model), html_escape(call.function),
                        devices_text(call.devices));
    for (const double seconds :
         {call.seconds, t.compute + t.prefill, t.memory + t.latency, t.tensor, t.bubble, t.data + t.optimizer, t.fixed})
      rows += fmt::format(R"(<td class="n">{}</td>)", three_digits(seconds, 2));
    rows += fmt::format("<td>{}{}</td></tr>\n", html_escape(layout_text(call.how)), call.swapped ? " · swapped" : "");
  }
  return rows + "</table></div>\n";
}

std::string runner_up_table(const Request& request, const SearchResult& result) {
  if (result.plans.size() < 2) return "";
  std::string rows = "<h2>The best plan of every other form</h2>" +
                     head({"form", "slower", "placement", "why it is not chosen"}, 1, 2);
  for (size_t i = 1; i < result.plans.size(); ++i)
    rows += fmt::format(R"(<tr><td>{}</td><td class="n">{:+.1f} %</td><td>{}</td><td>{}</td></tr>)"
                        "\n",
                        result.plans[i].form, 100 * (result.plans[i].seconds / result.plans[0].seconds - 1),
                        html_escape(result.plans[i].parts + staleness_text(result.plans[i])),
                        html_escape(objection(request, result.plans[0], result.plans[i])));
  return rows + "</table></div>\n";
}

std::string synchrony_table(const SearchResult& result) {
  if (result.synchrony.empty()) return "";
  std::string rows = "<h2>Staleness</h2>" + head({"iterations ahead", "seconds", "the best plan"}, 1, 2);
  for (const Synchrony& tried : result.synchrony)
    rows += fmt::format(R"(<tr><td>{}{}</td><td class="n">{}</td><td>{}</td></tr>)"
                        "\n",
                        tried.staleness, tried.staleness == result.plans[0].placement.staleness ? " (taken)" : "",
                        std::isinf(tried.seconds) ? "" : three_digits(tried.seconds, 2),
                        std::isinf(tried.seconds) ? "no plan that gains 0.5 % over less staleness"
                                                  : html_escape(tried.form + ": " + tried.parts));
  return rows + "</table></div>\n";
}

struct Word {
  const char *word, *meaning;
};
constexpr Word kWords[] = {
    {"flattening, interleaving, nested, split, separation, standalone",
     "Forms of a placement. Flattening puts every model on all devices. Interleaving puts the models that train or "
     "generate on all of them and others elsewhere. In a nested placement, groups of devices overlap in another "
     "way. A separation generates and trains on different devices, a standalone placement gives each model devices of "
     "its own, and a split is any other."},
    {"policy+reference 8 | value 4", "The policy and the reference share 8 devices; the value model has 4."},
    {"policy_trainer",
     "The policy as it is trained: it has devices and layouts of its own, and its new weights go to the policy that "
     "generates."},
    {"tp, pp, dp, cp, ep",
     "tp: how many devices share each layer (tensor parallel). pp: how many hold a part of the layers each, one after "
     "the other (pipeline parallel). dp: how many copies work on different rows (data parallel). cp: how many share "
     "the tokens of a row (context parallel). ep: how many share the experts."},
    {"ulysses",
     "Devices that share the tokens of a row exchange tokens for heads around each attention; else they gather keys "
     "and values."},
    {"zero 1, 2, 3",
     "The copies divide the optimizer's state among them (1), also the gradients (2), also the weights (3)."},
    {"rows", "Rows of a micro-batch; “rows at once” are the sequences that decode together."},
    {"swapped", "The weights are in the host's memory while other functions run."},
    {"recompute", "Activations are not kept, but computed a second time in the backward pass."},
    {"compute, decode",
     "compute: seconds of arithmetic. decode: seconds of generating tokens, most of which go into reading weights."},
    {"tensor, bubble, update, fixed",
     "tensor: seconds in which devices that share layers exchange results. bubble: seconds in which pipeline stages "
     "wait. update: seconds of sending gradients and of optimizer steps. fixed: seconds that a phase takes even if it "
     "does little."},
    {"prefill, logits, workspace",
     "Memory for reading the prompts (prefill), for a number of each token of the vocabulary at each position "
     "(logits), and "
     "for what the software itself needs (workspace)."},
    {"attention over cp", "Memory for what devices that share the tokens of a row exchange for one layer."},
    {"staleness", "Iterations that generation may run ahead of training."}};

std::string glossary() {
  std::string out = "<h2>Words</h2><dl>";
  for (const Word& word : kWords) out += fmt::format("<dt>{}</dt><dd>{}</dd>", word.word, word.meaning);
  return out + "</dl>\n";
}

}  // namespace

std::string search_html(const Request& request, const SearchResult& result, int64_t iterations) {
  const Plan& best = result.plans.at(0);
  const Timeline timeline = timeline_of(request, best, simulate_plan(request, best));
  const std::string cluster = html_escape(cluster_text(request.cluster));
  std::string page = fmt::format(
      R"(<!doctype html><html lang="en"><head><meta charset="utf-8">)"
      R"(<meta name="viewport" content="width=device-width, initial-scale=1"><title>Plan for {0}</title>)"
      "<style>{1}{2}</style></head><body><main>\n<h1>Plan for {0}: {3}</h1><p>{4}</p>\n"
      "<p><b>{5} s</b> an iteration (simulated), {6:.0f} tokens/s; {7}.</p><p>{8}.</p>\n<h2>One iteration: what "
      "each device does</h2><p class=\"soft narrow\">Scroll wide pictures and tables sideways.</p>\n",
      cluster, base::html_palette(), kStyle, best.form, html_escape(best.parts + staleness_text(best)),
      three_digits(best.seconds, 2), request.load.tokens() / best.seconds,
      html_escape(cost_text(request, best.seconds, iterations)), html_escape(workload_text(request)));
  page += timeline_figure(best, timeline) + "<h2>Seconds of each function, by cause</h2>\n" + calls_table(best);
  page += "<h2>Memory of a device when it holds most</h2>\n" + memory_figure(request, best) +
          runner_up_table(request, result) + synchrony_table(result) + glossary();
  page += fmt::format(
      "<p class=\"soft\">Placements that were considered: {}, of which {} were ruled out by their bound and {} not "
      "searched to the end. "
      "Times are simulated from a cost model, not measured. Prices are {}.</p></main></body></html>\n",
      result.placements, result.pruned, result.cut_short,
      prices_are_given(request.cluster) ? "those you gave" : html_escape(price_source()));
  return page;
}

}  // namespace collimate::plan

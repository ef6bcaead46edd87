#include "collimate/report/html.h"

namespace collimate::report {

namespace {

constexpr std::string_view kSheet = R"css(
* { box-sizing: border-box; }
body { margin:0; background:var(--paper); color:var(--ink); font:15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width:1180px; margin:0 auto; padding:28px 20px 60px; }
h1 { font-size:26px; margin:0 0 2px; } h2 { font-size:19px; margin:38px 0 10px; } figure + figure { margin-top:16px; } .charts figure + figure { margin-top:0; } h3 { font-size:15px; margin:0; }
p { margin:4px 0 10px; } code { font:13px ui-monospace, "DejaVu Sans Mono", monospace; background:var(--panel); padding:2px 6px;
  border-radius:5px; overflow-wrap:anywhere; } :focus-visible { outline:2px solid var(--c0); outline-offset:2px; }
 .soft { color:var(--soft); }
.warning { border-left:4px solid var(--bad); background:var(--panel); padding:8px 12px; margin:12px 0; }
.tiles { display:grid; grid-template-columns:repeat(auto-fit, minmax(min(100%, 172px), 1fr)); gap:12px; margin-top:18px; }
.tile { background:var(--panel); border:1px solid var(--line); border-radius:10px; padding:12px 14px; }
.tile b { display:block; font-size:18px; font-weight:650; line-height:1.35; } .tile span { color:var(--soft); font-size:13px; }
.charts { display:grid; grid-template-columns:repeat(auto-fit, minmax(min(100%, 500px), 1fr)); gap:16px; }
figure { margin:0; background:var(--panel); border:1px solid var(--line); border-radius:10px; padding:12px 14px 8px;
  position:relative; min-width:0; }
.wide .scroll > svg { min-width:1000px; } .bars .scroll > svg { min-width:700px; } .narrow { display:none; }
svg { display:block; width:100%; height:auto; } svg text { fill:var(--soft); font:12px system-ui, "DejaVu Sans", sans-serif; }
.grid { stroke:var(--line); stroke-width:1; } .axis { stroke:var(--soft); stroke-width:1; } .raw { opacity:.28; }
.curve { fill:none; stroke-width:2; stroke-linejoin:round; } .cursor { stroke:var(--soft); stroke-dasharray:3 3; visibility:hidden; }
.legend { display:flex; flex-wrap:wrap; gap:4px 16px; margin:4px 0 6px; padding:0; list-style:none; font-size:13px; color:var(--soft); }
.legend svg { display:inline-block; width:26px; height:10px; vertical-align:middle; margin-right:6px; }
.tip { position:absolute; top:8px; right:12px; font-size:12px; color:var(--ink); background:var(--paper); border:1px solid var(--line);
  border-radius:6px; padding:2px 8px; visibility:hidden; pointer-events:none; }
table { border-collapse:collapse; font-size:14px; font-variant-numeric:tabular-nums; }
th { text-align:left; color:var(--soft); font-weight:600; } td, th { padding:4px 14px 4px 0; border-bottom:1px solid var(--line); vertical-align:top; }
td.n, th.n { text-align:right; white-space:nowrap; } tr:first-child th { white-space:nowrap; } .runs td { max-width:420px; min-width:90px; overflow-wrap:anywhere; } .scroll { overflow-x:auto; } td svg { width:120px; height:22px; }
.swatch { display:inline-block; width:11px; height:11px; border-radius:3px; margin-right:8px; }
.sample { border:1px solid var(--line); border-radius:10px; margin:0 0 12px; overflow:hidden; }
.sample header { background:var(--panel); border-bottom:1px solid var(--line); }
.pair { display:grid; grid-template-columns:repeat(auto-fit, minmax(min(100%, 380px), 1fr)); }
.pair + .pair { border-top:1px solid var(--line); } .pair > div { padding:8px 14px 12px; min-width:0; } .pair > div + div { border-left:1px solid var(--line); }
.text { font:13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space:pre-wrap; overflow-wrap:anywhere; margin:2px 0 0;
  max-height:260px; overflow-y:auto; }
.label { font-size:12px; color:var(--soft); } .chip { display:inline-block; max-width:100%; border-radius:10px; padding:0 9px; font-size:12px;
  font-weight:600; border:1px solid currentColor; margin:0 0 2px 8px; overflow-wrap:anywhere; }
.up { color:var(--good); } .down { color:var(--bad); } .flat { color:var(--soft); }
details { margin:10px 0; } summary { cursor:pointer; font-weight:600; }
pre { background:var(--panel); border:1px solid var(--line); border-radius:10px; padding:12px 14px; overflow-x:auto;
  font:13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
@media (max-width:600px) { .charts figure > svg text { font-size:17px; } .bars .scroll > svg text { font-size:18px; } .narrow { display:block; } main { padding:20px 14px 40px; } }
@media (max-width:801px) { .pair > div + div { border-left:0; border-top:1px solid var(--line); } }
@media print { figure, .sample { break-inside:avoid; } .text { max-height:none; } }
)css";

constexpr std::string_view kScript = R"js(
for (const figure of document.querySelectorAll('figure[data-points]')) {
  const data = JSON.parse(figure.dataset.points), svg = figure.querySelector(':scope > svg');
  const tip = figure.querySelector('.tip'), cursor = svg.querySelector('.cursor');
  const show = on => { tip.style.visibility = cursor.style.visibility = on ? 'visible' : 'hidden'; };
  const steps = [...new Set(data.lines.flatMap(line => line.x))].sort((a, b) => a - b);
  let at = steps.length - 1;
  const point = index => {
    at = Math.max(0, Math.min(steps.length - 1, index));
    const step = steps[at], parts = ['iteration ' + step];
    for (const line of data.lines) { const i = line.x.indexOf(step); if (i >= 0) parts.push(line.label + ' ' + line.y[i]); }
    tip.textContent = parts.join(' · ');
    const px = data.left + (step - data.low) / ((data.high - data.low) || 1) * (data.right - data.left);
    cursor.setAttribute('x1', px); cursor.setAttribute('x2', px); show(true);
  };
  if (!steps.length) continue;
  svg.addEventListener('pointerleave', () => show(false));
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * data.width;
    const wanted = data.low + (x - data.left) / (data.right - data.left) * (data.high - data.low);
    let best = 0;
    steps.forEach((step, i) => { if (Math.abs(step - wanted) < Math.abs(steps[best] - wanted)) best = i; });
    point(best);
  });
  svg.addEventListener('keydown', event => {
    const move = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: steps.length - 1 }[event.key];
    if (move !== undefined) { point(move); event.preventDefault(); }
  });
  svg.addEventListener('blur', () => show(false));
}
)js";

}  // namespace

std::string_view style_sheet() { return kSheet; }
std::string_view page_script() { return kScript; }

}  // namespace collimate::report

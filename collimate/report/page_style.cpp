#include "collimate/report/html.h"

namespace collimate::report {

std::string_view style_sheet() {
  return R"css(
:root { --paper:#ffffff; --panel:#f6f7f9; --line:#dde1e7; --ink:#1b2330; --soft:#5b6675; --good:#0a7d4f; --bad:#b3261e;
  --c0:#1f5fd0; --c1:#c2570c; --c2:#0a8a5f; --c3:#8b3fc4; --c4:#b0226b; --c5:#5e6b7a; --c6:#94790a; --c7:#0b7f96; }
@media (prefers-color-scheme: dark) {
  :root { --paper:#12161c; --panel:#1a2029; --line:#2e3743; --ink:#e4e9f0; --soft:#9aa7b6; --good:#4fcf96; --bad:#ff8a80;
    --c0:#7cacff; --c1:#ff9f5a; --c2:#4fd6a2; --c3:#c79bff; --c4:#ff86bd; --c5:#a9b5c3; --c6:#e0c34a; --c7:#5fd0e6; }
}
* { box-sizing: border-box; }
body { margin:0; background:var(--paper); color:var(--ink); font:15px/1.5 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; }
main { max-width:1180px; margin:0 auto; padding:28px 20px 60px; }
h1 { font-size:26px; margin:0 0 2px; } h2 { font-size:19px; margin:38px 0 10px; } figure + figure { margin-top:16px; } .charts figure + figure { margin-top:0; } h3 { font-size:15px; margin:0; }
p { margin:4px 0 10px; } .soft { color:var(--soft); }
.warning { border-left:4px solid #c2410c; background:var(--panel); padding:8px 12px; margin:12px 0 0; }
.tiles { display:grid; grid-template-columns:repeat(auto-fit, minmax(158px, 1fr)); gap:12px; margin-top:18px; }
.tile { background:var(--panel); border:1px solid var(--line); border-radius:10px; padding:12px 14px; }
.tile b { display:block; font-size:18px; font-weight:650; line-height:1.35; white-space:nowrap; } .tile span { color:var(--soft); font-size:13px; }
.charts { display:grid; grid-template-columns:repeat(auto-fit, minmax(min(100%, 500px), 1fr)); gap:16px; }
figure { margin:0; background:var(--panel); border:1px solid var(--line); border-radius:10px; padding:12px 14px 8px;
  position:relative; min-width:0; }
figure.wide { overflow-x:auto; } figure.wide svg { min-width:640px; }
svg { display:block; width:100%; height:auto; } svg text { fill:var(--soft); font:12px system-ui, "DejaVu Sans", sans-serif; }
svg text.inside { fill:#fff; font-size:11px; pointer-events:none; }
.grid { stroke:var(--line); stroke-width:1; } .axis { stroke:var(--soft); stroke-width:1; } .raw { opacity:.28; }
.curve { fill:none; stroke-width:2; stroke-linejoin:round; } .cursor { stroke:var(--soft); stroke-dasharray:3 3; visibility:hidden; }
.legend { display:flex; flex-wrap:wrap; gap:4px 16px; margin:4px 0 6px; padding:0; list-style:none; font-size:13px; color:var(--soft); }
.legend svg { display:inline-block; width:26px; height:10px; vertical-align:middle; margin-right:6px; }
.tip { position:absolute; top:8px; right:12px; font-size:12px; color:var(--ink); background:var(--paper); border:1px solid var(--line);
  border-radius:6px; padding:2px 8px; visibility:hidden; pointer-events:none; }
table { border-collapse:collapse; font-size:14px; font-variant-numeric:tabular-nums; }
th { text-align:left; color:var(--soft); font-weight:600; } td, th { padding:4px 14px 4px 0; border-bottom:1px solid var(--line); vertical-align:top; }
td.n, th.n { text-align:right; } .scroll { overflow-x:auto; } td svg { width:120px; height:22px; }
.swatch { display:inline-block; width:11px; height:11px; border-radius:3px; margin-right:8px; }
.sample { border:1px solid var(--line); border-radius:10px; margin:0 0 12px; overflow:hidden; }
.sample header { background:var(--panel); border-bottom:1px solid var(--line); }
.pair { display:grid; grid-template-columns:repeat(auto-fit, minmax(min(100%, 380px), 1fr)); }
.pair > div { padding:8px 14px 12px; min-width:0; } .pair > div + div { border-left:1px solid var(--line); }
.text { font:13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; white-space:pre-wrap; overflow-wrap:anywhere; margin:2px 0 0;
  max-height:260px; overflow-y:auto; }
.label { font-size:12px; color:var(--soft); } .chip { border-radius:999px; padding:1px 9px; font-size:12px; font-weight:600;
  border:1px solid currentColor; margin-left:8px; white-space:nowrap; }
.up { color:var(--good); } .down { color:var(--bad); } .flat { color:var(--soft); }
details { margin:10px 0; } summary { cursor:pointer; font-weight:600; }
pre { background:var(--panel); border:1px solid var(--line); border-radius:10px; padding:12px 14px; overflow-x:auto;
  font:13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
@media print { figure, .sample { break-inside:avoid; } .text { max-height:none; } }
)css";
}

std::string_view page_script() {
  return R"js(
for (const figure of document.querySelectorAll('figure[data-points]')) {
  const data = JSON.parse(figure.dataset.points), svg = figure.querySelector(':scope > svg');
  const tip = figure.querySelector('.tip'), cursor = svg.querySelector('.cursor');
  const show = on => { tip.style.visibility = cursor.style.visibility = on ? 'visible' : 'hidden'; };
  svg.addEventListener('pointerleave', () => show(false));
  svg.addEventListener('pointermove', event => {
    const box = svg.getBoundingClientRect(), at = (event.clientX - box.left) / box.width * data.width;
    const wanted = data.low + (at - data.left) / (data.right - data.left) * (data.high - data.low);
    let best = null;
    for (const line of data.lines) for (const x of line.x)
      if (best === null || Math.abs(x - wanted) < Math.abs(best - wanted)) best = x;
    if (best === null) return;
    const parts = ['step ' + best];
    for (const line of data.lines) { const i = line.x.indexOf(best); if (i >= 0) parts.push(line.label + ' ' + line.y[i]); }
    tip.textContent = parts.join(' · ');
    const px = data.left + (best - data.low) / ((data.high - data.low) || 1) * (data.right - data.left);
    cursor.setAttribute('x1', px); cursor.setAttribute('x2', px); show(true);
  });
}
)js";
}

}  // namespace collimate::report

const told = JSON.parse(document.getElementById("data").textContent);
const ink = getComputedStyle(document.body);
const colour = (name) => ink.getPropertyValue(name).trim();
const lines = { onset: ["--critical", []], fired: ["--warning", [4, 4]], closed: ["--well", []] };
function mark(chart, marks, odd) {
  const { ctx, bbox } = chart;
  const inside = (x) => x >= bbox.left && x <= bbox.left + bbox.width;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  for (const one of marks) {
    const x = Math.round(chart.valToPos(one.step, "x", true));
    if (!inside(x)) continue;
    ctx.strokeStyle = colour(lines[one.kind][0]);
    ctx.setLineDash(lines[one.kind][1]);
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
  }
  ctx.setLineDash([]);
  ctx.strokeStyle = colour("--critical");
  ctx.lineWidth = 2 * devicePixelRatio;
  for (const step of odd) {
    const x = chart.valToPos(step, "x", true), y = bbox.top + 8 * devicePixelRatio, r = 4 * devicePixelRatio;
    if (!inside(x)) continue;
    ctx.beginPath(); ctx.moveTo(x - r, y - r); ctx.lineTo(x + r, y + r);
    ctx.moveTo(x + r, y - r); ctx.lineTo(x - r, y + r); ctx.stroke();
  }
  ctx.restore();
}
function columns(parts) {
  const steps = [...new Set(parts.flatMap((part) => part.steps))].sort((a, b) => a - b);
  const at = new Map(steps.map((step, place) => [step, place]));
  return [steps, ...parts.map((part) => {
    const column = new Array(steps.length).fill(undefined);
    part.steps.forEach((step, place) => { column[at.get(step)] = part.values[place]; });
    return column;
  })];
}
function draw(place) {
  const found = told[place.dataset.case];
  if (!found || place.childElementCount) return;
  for (const curve of found.curves) {
    const box = document.createElement("div"), head = document.createElement("h4");
    box.className = "chart";
    head.textContent = curve.name;
    box.append(head);
    place.append(box);
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
    const odd = curve.parts.flatMap((part) => part.odd);
    const series = curve.parts.map((part) => ({ label: (part.undone ? "undone, segment " : "segment ") + part.segment,
      stroke: colour(part.undone ? "--undone" : "--info"), width: 1.5, points: { show: part.steps.length < 3 } }));
    new uPlot({ width: Math.min(place.clientWidth || 900, 980), height: 170, scales: { x: { time: false } },
      axes: [axis, { ...axis, size: 64 }], cursor: { sync: { key: place.dataset.case } },
      hooks: { draw: [(chart) => mark(chart, found.marks, odd)] }, series: [{ label: "step" }, ...series] },
      columns(curve.parts), box);
  }
}
function unfold() {
  const named = document.getElementById(location.hash.slice(1));
  if (named instanceof HTMLDetailsElement) named.open = true;
}
addEventListener("hashchange", unfold);
unfold();
for (const place of document.querySelectorAll(".curves")) {
  const fold = place.closest("details");
  if (fold.open) draw(place);
  fold.addEventListener("toggle", () => { if (fold.open) draw(place); });
}

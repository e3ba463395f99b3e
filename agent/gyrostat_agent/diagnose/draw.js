const told = JSON.parse(document.getElementById("data").textContent);
const place = document.getElementById("curves");
const ink = getComputedStyle(document.body);
const colour = (name) => ink.getPropertyValue(name).trim();
function marks(chart) {
  const { ctx, bbox } = chart;
  for (const mark of told.marks) {
    const x = Math.round(chart.valToPos(mark.step, "x", true));
    if (x < bbox.left || x > bbox.left + bbox.width) continue;
    ctx.save();
    ctx.strokeStyle = colour("--" + mark.severity);
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash(mark.onset ? [] : [4, 4]);
    ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke();
    ctx.restore();
  }
}
for (const curve of told.curves) {
  const box = document.createElement("div");
  const head = document.createElement("h3");
  box.className = "chart";
  head.textContent = curve.name;
  box.append(head);
  place.append(box);
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line") }, ticks: { stroke: colour("--line") } };
  const width = Math.min(place.clientWidth || 900, 940);
  new uPlot({ width, height: 180, scales: { x: { time: false } }, axes: [axis, { ...axis, size: 64 }],
    cursor: { sync: { key: "step" } }, hooks: { draw: [marks] },
    series: [{ label: "step" }, { label: curve.name, stroke: colour("--info"), width: 1.5, points: { show: false } }] },
    [curve.steps, curve.values], box);
}

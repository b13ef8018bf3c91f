"use strict";
// Lays out state.json; every text of the server goes in by textContent, so that no name can become markup.

const EVERY_MS = 1000;
const KINDS = ["interactive", "batch"];
const SVG = "http://www.w3.org/2000/svg";
let lastHeard = null;

const at = (id) => document.getElementById(id);

function make(tag, className, ...inside) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...inside.filter((one) => one !== null && one !== ""));
  return element;
}

function draw(tag, attributes, text) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function put(id, ...inside) {
  at(id).replaceChildren(...inside);
}

// Words for numbers

const short = (value) => String(Number(value.toPrecision(3)));
const digits = (value) => (value === 0 ? "0" : value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
const milliseconds = (value) => (value >= 1000 ? [digits(value / 1000), "s"] : [digits(value), "ms"]);
const megabytes = (value) => (value >= 1024 ? [digits(value / 1024), "GB"] : [value.toFixed(0), "MB"]);
const words = ([value, unit]) => `${value} ${unit}`;

function duration(seconds) {
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  return `${Math.floor(seconds / 86400)} days`;
}

const plural = (count, one) => `${count} ${one}${count === 1 ? "" : "s"}`;
const lastOf = (values) => values.filter((one) => one !== null).at(-1) ?? null;

// Parts

function bar(share, className) {
  const fill = make("i");
  fill.style.width = `${Math.min(100, Math.max(0, 100 * share))}%`;
  return make("div", `bar ${className ?? ""}`, fill);
}

function facts(pairs) {
  const list = make("dl");
  for (const [name, value, className] of pairs) {
    if (value !== null && value !== "") list.append(make("dt", "", name), make("dd", className ?? "", value));
  }
  return list;
}

function tile(title, value, unit, note, className) {
  return make("div", `tile ${className ?? ""}`, make("span", "", title),
    make("b", "", value, unit ? make("small", "", unit) : null), make("em", "", note ?? ""));
}

function tiles(state) {
  const { plots } = state;
  const rate = KINDS.reduce((sum, kind) => sum + plots.rate[kind].slice(-2).reduce((a, b) => a + b, 0) / 2, 0);
  const shown = [tile("Frames a second", digits(rate), "", `${state.frames_done.toLocaleString("en")} since the start`)];
  for (const kind of KINDS) {
    const middle = lastOf(plots.p50_ms[kind]);
    const late = lastOf(plots.p95_ms[kind]);
    const [value, unit] = middle === null ? ["–", ""] : milliseconds(middle);
    const title = kind === "interactive" ? "Interactive frame" : "Batch frame";
    shown.push(tile(title, value, unit, late === null ? "none of late" : `95 % within ${words(milliseconds(late))}`));
  }
  shown.push(tile("Jobs", String(state.running), "running", `${state.queued} waiting`, state.queued ? "wait" : ""));
  shown.push(tile("Clients", String(state.clients.length), "", plural(state.memory.rings, "frame ring")));
  shown.push(tile("Memory", ...megabytes(state.memory.process_mb), "of this process"));
  const warmest = state.gpus.reduce((most, gpu) => Math.max(most, gpu.temperature_c ?? 0), 0);
  const slow = state.gpus.some((gpu) => gpu.throttled && gpu.throttled.length);
  if (warmest) shown.push(tile("GPU", warmest.toFixed(0), "°C", slow ? "held back" : "at full speed", slow ? "bad" : ""));
  else shown.push(tile("Processor", digits(state.cpu.used), "cores", `of ${state.cpu.cores}${state.cpu.load === null ? "" : ` · load ${digits(state.cpu.load)}`}`));
  const told = state.errors.reduce((sum, one) => sum + one.times, 0);
  shown.push(tile("Errors", String(told), "", state.failed ? `${plural(state.failed, "frame")} failed` : "no frame failed", told ? "bad" : ""));
  put("tiles", ...shown);
}

// Plots: the last minutes, the latest at the right

const HEIGHT = 190;
const EDGE = { left: 46, right: 6, top: 8, bottom: 22 };

function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= value);
}

function plot(id, name, series, stepSeconds, unit) {
  const all = series.flatMap((one) => one.values).filter((one) => one !== null);
  const top = niceTop(Math.max(0, ...all));
  const count = series[0].values.length;
  const width = at(id).clientWidth || 720;
  const x = (index) => EDGE.left + ((width - EDGE.left - EDGE.right) * index) / (count - 1);
  const y = (value) => HEIGHT - EDGE.bottom - ((HEIGHT - EDGE.top - EDGE.bottom) * value) / top;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": name });
  for (const share of [0, 0.5, 1]) {
    svg.append(draw("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(share * top), y2: y(share * top) }));
    svg.append(draw("text", { x: EDGE.left - 8, y: y(share * top) + 4, "text-anchor": "end" }, unit(share * top)));
  }
  for (const minutes of [4, 3, 2, 1]) {
    const index = count - 1 - (minutes * 60) / stepSeconds;
    if (index > 0) svg.append(draw("text", { x: x(index), y: HEIGHT - 5, "text-anchor": "middle" }, `−${minutes} min`));
  }
  svg.append(draw("text", { x: x(count - 1), y: HEIGHT - 5, "text-anchor": "end" }, "now"));
  for (const { values, className, area } of series) {
    let path = "";
    let start = null;
    const areas = [];
    values.forEach((value, index) => {
      if (value === null) { start = null; return; }
      path += `${start === null ? "M" : "L"}${x(index).toFixed(1)} ${y(value).toFixed(1)}`;
      if (start === null) { start = index; areas.push([]); }
      areas.at(-1).push(`${x(index).toFixed(1)} ${y(value).toFixed(1)}`);
      if (values[index - 1] == null && values[index + 1] == null) path += "h0.1"; // a lone point is a dot
    });
    if (area) {
      for (const points of areas) {
        const [first] = points[0].split(" ");
        const [last] = points.at(-1).split(" ");
        svg.append(draw("path", { class: `area ${className}`, d: `M${first} ${y(0)}L${points.join("L")}L${last} ${y(0)}Z` }));
      }
    }
    if (path) svg.append(draw("path", { class: `line ${className}`, d: path }));
  }
  put(id, svg);
}

function plots({ plots: given }) {
  plot("rate", "frames a second over time",
    KINDS.map((kind) => ({ values: given.rate[kind], className: kind, area: true })), given.step_s, short);
  const times = KINDS.flatMap((kind) => [
    { values: given.p50_ms[kind], className: kind },
    { values: given.p95_ms[kind], className: `${kind} soft` },
  ]);
  plot("times", "time of a frame over time", times, given.step_s,
    (value) => (value >= 1000 ? `${short(value / 1000)} s` : value ? `${short(value)} ms` : "0"));
}

// Tables

function table(id, heads, rows, empty) {
  if (!rows.length) { put(id, make("p", "none", empty)); return; }
  const head = make("tr", "", ...heads.map(([text, className]) => make("th", className ?? "", text)));
  const lines = rows.map((row) => make("tr", "", ...row.map((cell, index) => make("td", heads[index][1] ?? "", cell))));
  put(id, make("table", "", make("thead", "", head), make("tbody", "", ...lines)));
}

function jobs(state) {
  const rows = state.jobs.map((job) => {
    const progress = make("div", "");
    if (job.total > 1) progress.append(`${job.done} of ${job.total}`, bar(job.done / job.total, job.priority));
    else progress.append(job.state === "running" ? "at work" : "–");
    return [job.client, `${job.priority} ${job.kind}`, job.state, progress, duration(job.age_s)];
  });
  table("jobs", [["Client"], ["Job"], ["State"], ["Frames"], ["Age", "number"]], rows, "Nothing to do.");
}

function errors(state) {
  if (!state.errors.length) { put("errors", make("p", "none", "None since the start.")); return; }
  const now = Date.now() / 1000;
  put("errors", ...state.errors.map((error) => {
    const detail = [error.expected && `expected ${error.expected}`, error.found && `found ${error.found}`].filter(Boolean).join("; ");
    const times = error.times > 1 ? `, ${error.times} times` : "";
    const where = [error.client, error.where, `${duration(Math.max(0, now - error.at))} ago${times}`].filter(Boolean).join(" · ");
    return make("div", "error", make("strong", "", error.message), detail ? make("p", "", detail) : null,
      error.hint ? make("p", "hint", error.hint) : null, make("p", "", `${error.code} · ${where}`));
  }));
}

function device(state) {
  const parts = [];
  for (const one of state.devices) {
    const nets = state.nets.filter((net) => net.device === one.name);
    const of = (value) => [...new Set(nets.map(value))].sort().join(", ");
    parts.push(make("h3", "", one.name), facts([
      ["frames lie in", one.kind === "cpu" ? "the machine's memory" : "the GPU's memory"],
      ["runs nets by", of((net) => net.provider) || one.provider],
      ["nets compute in", of((net) => net.precision.split(" ")[0]) || null],
    ]));
  }
  if (!parts.length) parts.push(make("p", "none", "Not known yet: the server still starts."));
  if (state.summary) parts.push(make("p", "note", state.summary));
  for (const gpu of state.gpus) {
    const clock = gpu.clock_mhz === null ? null : `${gpu.clock_mhz} MHz${gpu.clock_max_mhz === null ? "" : ` of ${gpu.clock_max_mhz}`}`;
    const power = gpu.power_w === null ? null : `${gpu.power_w.toFixed(0)} W${gpu.power_limit_w === null ? "" : ` of ${gpu.power_limit_w.toFixed(0)}`}`;
    const memory = gpu.memory_used_mb === null ? null : `${words(megabytes(gpu.memory_used_mb))} of ${words(megabytes(gpu.memory_total_mb))}`;
    const held = gpu.throttled === null ? null : gpu.throttled.join(", ") || "nothing";
    parts.push(make("h3", "", `GPU ${gpu.index}: ${gpu.name}`), facts([
      ["temperature", gpu.temperature_c === null ? null : `${gpu.temperature_c} °C`], ["power", power], ["clock", clock],
      ["memory clock", gpu.memory_clock_mhz === null ? null : `${gpu.memory_clock_mhz} MHz`], ["memory", memory],
      ["used", gpu.used_percent === null ? null : `${gpu.used_percent.toFixed(0)} %`],
      ["held back by", held, gpu.throttled && gpu.throttled.length ? "bad" : ""],
    ]));
  }
  if (state.gpus.length && state.gpus_age_s > 10) parts.push(make("p", "note", `NVML has not answered for ${duration(state.gpus_age_s)}.`));
  if (state.gpus_silent) parts.push(make("p", "note", `No temperature, power or clocks of a GPU: ${state.gpus_silent}`));
  put("device", ...parts);
}

function memory(state) {
  const { memory: given } = state;
  const parts = [facts([
    ["process", words(megabytes(given.process_mb))],
    ["frame rings", String(given.rings)],
    ["machine", given.machine_free_mb === null ? null : `${words(megabytes(given.machine_free_mb))} of ${words(megabytes(given.machine_total_mb))} free`],
  ])];
  if (given.warm_mb !== null) {
    const share = given.warm_mb / given.warm_budget_mb;
    parts.push(make("p", "note", `Kept warm: ${words(megabytes(given.warm_mb))} of ${words(megabytes(given.warm_budget_mb))}`),
      bar(share, share > 0.95 ? "bad" : ""));
  }
  put("memory", ...parts);
}

function show(state) {
  document.title = `${state.running ? "● " : ""}Faceplate ${state.name}`;
  at("name").textContent = state.name;
  at("state").textContent = state.state;
  at("state").className = `pill ${state.state}`;
  at("about").textContent = `version ${state.version} · up ${duration(state.uptime_s)} · ${state.instance}`;
  tiles(state);
  plots(state);
  jobs(state);
  errors(state);
  device(state);
  memory(state);
  const seen = state.nets.map((net) => [net.id, [net.precision, net.device].filter(Boolean).join(", "), net.provider.replace("ExecutionProvider", "")]);
  table("nets", [["Net"], ["Precision"], ["Provider"]], seen, "None in memory.");
  table("clients", [["Host"], ["Open jobs", "number"]], state.clients.map((one) => [one.name, String(one.jobs)]), "Nobody is connected.");
}

async function renew() {
  try {
    const answer = await fetch("state.json", { cache: "no-store", signal: AbortSignal.timeout(5000) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
    lastHeard = new Date();
    at("lost").hidden = true;
  } catch (error) {
    at("lost-since").textContent = lastHeard ? lastHeard.toLocaleTimeString() : "never";
    at("lost").hidden = false;
    at("state").textContent = "gone";
    at("state").className = "pill gone";
    if (!(error instanceof TypeError || error.name === "TimeoutError" || String(error.message).startsWith("status"))) throw error;
  } finally {
    setTimeout(renew, document.hidden ? 5 * EVERY_MS : EVERY_MS);
  }
}

renew();

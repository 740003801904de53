// SPDX-License-Identifier: Apache-2.0
// Asks the server for snapshot and history and shows them. Text from outside (names of processes,
// users, containers) is set as textContent only.
"use strict";

const DASH = "\u2013";
const GIB = 1 << 30;
const PERIOD = 2000;
const MANY = 8;  // GPUs, from which on cards are small
const state = {seconds: 300, cards: new Map(), sort: "memory_bytes", down: true, failures: 0, seen: 0};
const by = (id) => document.getElementById(id);

function node(name, className, text, parent) {
  const element = document.createElement(name);
  if (className) element.className = className;
  if (text !== undefined && text !== null) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

function fixed(value, digits, unit) {
  return value === null || value === undefined ? DASH : value.toFixed(digits) + unit;
}
const percent = (value) => fixed(value, 0, "\u202f%");
function bytes(value) {
  if (value === null || value === undefined) return DASH;
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (value >= 1024 && i < 4) { value /= 1024; ++i; }
  return value.toFixed(i === 0 || value >= 100 ? 0 : 1) + "\u202f" + units[i];
}
function rate(value) {
  if (value === null || value === undefined) return DASH;
  const units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
  let i = 0;
  while (value >= 1000 && i < 4) { value /= 1000; ++i; }
  return value.toFixed(i === 0 || value >= 100 ? 0 : 1) + "\u202f" + units[i];
}
const ratio = (a, b) => a === null || b === null || !b ? null : a / b;

const GRADES = {healthy: ["good", "\u2713 healthy"], fair: ["fair", "fair"], low: ["warn", "! low"], idle: ["idle", "idle"]};

const THROTTLE = {
  sw_power_cap: "power limit", hw_slowdown: "hardware slowdown", sw_thermal_slowdown: "heat",
  hw_thermal_slowdown: "heat (hardware)", hw_power_brake_slowdown: "power supply brake", sync_boost: "sync boost",
  applications_clocks_setting: "clock setting", display_clock_setting: "display clock",
};

class Card {
  constructor(parent, index) {
    this.root = node("article", "card", null, parent);
    const title = node("div", "title", null, this.root);
    this.name = node("h2", null, null, title);
    this.pill = node("span", "pill", null, title);
    this.cause = node("p", "cause", null, this.root);
    this.cause.hidden = true;
    this.meters = node("div", "meters", null, this.root);
    this.meter = {};
    for (const [key, label] of [["busy", "Busy"], ["sm", "SM activity"], ["memory", "Memory"],
                                ["power", "Power"], ["temperature", "Temperature"]]) {
      node("span", "name", label, this.meters);
      const fill = node("div", "fill", null, node("div", "track", null, this.meters));
      this.meter[key] = {fill, value: node("span", "value", DASH, this.meters)};
    }
    this.more = node("button", "more", "Charts", this.root);
    this.more.type = "button";
    this.more.setAttribute("aria-expanded", "false");
    this.more.addEventListener("click", () => {
      const open = this.root.classList.toggle("open");
      this.more.textContent = open ? "Less" : "Charts";
      this.more.setAttribute("aria-expanded", String(open));
      if (open) refreshNow();
    });
    const charts = node("div", "charts", null, this.root);
    const whole = (value) => String(Math.round(value));
    this.charts = [
      new Chart(charts, {title: "Utilisation", top: 100, axis: percent, text: percent,
        series: [{key: "gpu_utilization_percent", label: "busy"}, {key: "sm_activity_percent", label: "SM"}]}),
      new Chart(charts, {title: "Memory", top: 100, axis: percent, text: (v) => fixed(v, 1, "\u202f%"),
        series: [{key: "memory_percent", label: "used"}]}),
      new Chart(charts, {title: "Power", top: null, least: 10, axis: (v) => whole(v) + "\u202fW", text: (v) => fixed(v, 0, "\u202fW"),
        series: [{key: "power_watts", label: "power"}]}),
      new Chart(charts, {title: "Temperature", top: 100, axis: (v) => whole(v) + "\u202f\u00b0C",
        text: (v) => fixed(v, 0, "\u202f\u00b0C"), series: [{key: "temperature_celsius", label: "GPU"}]}),
      new Chart(charts, {title: "PCIe", top: null, least: 1e6, axis: rate, text: rate,
        series: [{key: "pcie_bytes_per_second", label: "both directions"}]}),
      new Chart(charts, {title: "NVLink", top: null, least: 1e6, axis: rate, text: rate,
        series: [{key: "nvlink_bytes_per_second", label: "both directions"}]}),
    ];
    this.details = node("dl", null, null, this.root);
    this.mig = node("div", "mig scroll", null, this.root);
  }

  set(key, share, text, level) {
    const meter = this.meter[key];
    meter.fill.style.width = share === null ? "0" : Math.min(100, Math.max(0, share * 100)) + "%";
    meter.fill.className = "fill" + (level ? " " + level : "");
    meter.value.textContent = text;
  }

  update(gpu) {
    this.name.replaceChildren();
    node("span", "quiet", `GPU ${gpu.index}  `, this.name);
    this.name.append(gpu.name || "unnamed");
    this.name.title = gpu.uuid || "";
    const mig = gpu.mig_mode === 1;
    const [level, word] = gpu.lost ? ["bad", "\u2717 lost"]
      : GRADES[gpu.health.grade] || ["idle", mig ? "MIG" : "unknown"];
    this.pill.className = "pill " + level;
    this.pill.textContent = word;
    this.showCause(gpu);
    const used = ratio(gpu.memory_used_bytes, gpu.memory_total_bytes);
    const drawn = ratio(gpu.power_watts, gpu.power_limit_watts);
    const slow = gpu.slowdown_temperature_celsius;
    this.set("busy", ratio(gpu.gpu_utilization_percent, 100), percent(gpu.gpu_utilization_percent));
    this.set("sm", ratio(gpu.sm_activity_percent, 100), percent(gpu.sm_activity_percent));
    this.set("memory", used, used === null ? DASH
      : `${(gpu.memory_used_bytes / GIB).toFixed(1)} / ${(gpu.memory_total_bytes / GIB).toFixed(1)}\u202fGiB`,
      used >= 0.95 ? "bad" : "");
    this.set("power", drawn, gpu.power_watts === null ? DASH
      : fixed(gpu.power_watts, 0, "") + (gpu.power_limit_watts === null ? "" : ` / ${gpu.power_limit_watts.toFixed(0)}`) + "\u202fW");
    this.set("temperature", ratio(gpu.temperature_celsius, slow || 100), fixed(gpu.temperature_celsius, 0, "\u202f\u00b0C"),
      slow && gpu.temperature_celsius >= slow - 3 ? "bad" : gpu.temperature_celsius >= 80 ? "warn" : "");
    this.limit = gpu.power_limit_watts;
    this.slow = slow;
    this.showDetails(gpu);
    this.showInstances(gpu);
    this.charts[5].figure.hidden = !gpu.nvlink_active_links;
  }

  showCause(gpu) {
    const health = gpu.health;
    const real = health.causes.filter((c) => c.name !== "no_job");
    const notable = real.length > 0;
    this.cause.className = notable ? "cause warn" : "cause";
    this.cause.hidden = gpu.lost || (!notable && health.grade !== "idle");
    this.cause.textContent = notable ? `${health.text}. Try: ${real[0].cure}.` : "No process uses this GPU.";
  }

  showDetails(gpu) {
    const throttle = (gpu.throttle_reasons || []).filter((r) => r !== "gpu_idle");
    const link = gpu.pcie_generation === null ? DASH : `gen ${gpu.pcie_generation} \u00d7${gpu.pcie_lanes}`;
    const ecc = gpu.ecc_uncorrected === null ? DASH : !gpu.ecc_corrected && !gpu.ecc_uncorrected ? "none" : `${gpu.ecc_corrected} corrected, ${gpu.ecc_uncorrected} uncorrected`;
    const rows = [
      ["SM clock", gpu.clock_sm_mhz === null ? DASH : `${gpu.clock_sm_mhz} of ${gpu.clock_sm_max_mhz ?? DASH} MHz`],
      ["Memory clock", fixed(gpu.clock_memory_mhz, 0, " MHz")],
      ["Clocks held down by", gpu.throttle_reasons === null ? DASH : throttle.length ? throttle.map((r) => THROTTLE[r] || r).join(", ") : "nothing",
        throttle.some((r) => r.includes("thermal") || r.startsWith("hw_")) ? "bad-text" : throttle.length ? "warn-text" : ""],
      ["Tensor cores", percent(gpu.tensor_activity_percent)],
      ["Memory bandwidth", percent(gpu.dram_activity_percent)],
      ["Occupancy", percent(gpu.sm_occupancy_percent)],
      ["PCIe " + link, `\u2191 ${rate(gpu.pcie_tx_bytes_per_second)}  \u2193 ${rate(gpu.pcie_rx_bytes_per_second)}`],
      ["NVLink" + (gpu.nvlink_active_links ? ` ${gpu.nvlink_active_links} links` : ""),
        gpu.nvlink_active_links ? `\u2191 ${rate(gpu.nvlink_tx_bytes_per_second)}  \u2193 ${rate(gpu.nvlink_rx_bytes_per_second)}` : DASH],
      ["ECC errors", ecc, gpu.ecc_uncorrected > 0 ? "bad-text" : ""],
      ["Memory temperature", fixed(gpu.memory_temperature_celsius, 0, " \u00b0C")],
      ["Xid errors", gpu.xid_errors === null ? DASH : gpu.xid_errors ? `${gpu.xid_errors}, last ${gpu.xid_last}` : "none",
        gpu.xid_errors > 0 ? "bad-text" : ""],
      ["Energy", gpu.energy_joules === null ? DASH : fixed(gpu.energy_joules / 3.6e6, 2, " kWh")],
    ];
    this.details.replaceChildren();
    for (const [name, value, className] of rows) {
      const cell = node("div", null, null, this.details);
      node("dt", null, name, cell);
      node("dd", className, value, cell);
    }
  }

  showInstances(gpu) {
    this.mig.replaceChildren();
    if (!gpu.mig_instances.length) return;
    const table = node("table", null, null, this.mig);
    const head = node("tr", null, null, node("thead", null, null, table));
    for (const [text, number] of [["MIG instance"], ["GI/CI"], ["Engine", 1], ["SM", 1], ["Memory", 1]]) {
      node("th", number ? "number" : "", text, head);
    }
    const body = node("tbody", null, null, table);
    for (const i of gpu.mig_instances) {
      const row = node("tr", null, null, body);
      node("td", null, (i.name || "").replace(/^.*MIG /, "MIG "), row);
      node("td", null, `${i.gpu_instance}/${i.compute_instance}`, row);
      node("td", "number", percent(i.engine_activity_percent), row);
      node("td", "number", percent(i.sm_activity_percent), row);
      node("td", "number", `${bytes(i.memory_used_bytes)} of ${bytes(i.memory_total_bytes)}`, row);
    }
  }

  // Where there are many GPUs, only cards that were opened show their charts.
  closed() {
    return this.root.parentNode.classList.contains("many") && !this.root.classList.contains("open");
  }

  chart(history) {
    if (this.closed()) return;
    for (const chart of this.charts) {
      const limit = chart.spec.title === "Power" ? this.limit : chart.spec.title === "Temperature" ? this.slow : null;
      chart.update(history.unix_ms, history, state.seconds, limit);
    }
  }
}

function span(seconds) {
  const minutes = Math.floor(seconds / 60);
  if (seconds < 120) return `${Math.floor(seconds)} s`;
  if (minutes < 120) return `${minutes} min`;
  if (minutes < 2880) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor(minutes / 60) % 24} h`;
}

const COLUMNS = [
  ["pid", "PID", (p) => p.pid],
  ["user", "User", (p) => p.user || DASH],
  ["container", "Container", (p) => p.container || DASH],
  ["gpu", "GPU", (p) => p.gpu + (p.gpu_instance === null ? "" : `:${p.gpu_instance}`)],
  ["kind", "Kind", (p) => p.kind],
  ["sm_percent", "SM", (p) => percent(p.sm_percent), "number"],
  ["memory_bytes", "GPU memory", (p) => bytes(p.memory_bytes), "number"],
  ["host_cores", "CPU", (p) => p.host_cores === null ? DASH : percent(p.host_cores * 100), "number"],
  ["running_seconds", "Running", (p) => p.running_seconds === null ? DASH : span(p.running_seconds), "number"],
  ["host_resident_bytes", "Host memory", (p) => bytes(p.host_resident_bytes), "number"],
  ["name", "Name", (p) => p.name || (p.in_proc ? DASH : "(ended, or outside of this container)"), "long"],
];

function showProcessHead() {
  const head = by("process-head");
  head.replaceChildren();
  for (const [key, label, , className] of COLUMNS) {
    const th = node("th", className === "number" ? "number" : "", null, head);
    if (state.sort === key) th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
    const button = node("button", null, label, th);
    button.type = "button";
    button.addEventListener("click", () => {
      state.down = state.sort === key ? !state.down : true;
      state.sort = key;
      showProcessHead();
      if (state.snapshot) showProcesses(state.snapshot);
    });
  }
}

function showProcesses(snapshot) {
  const list = [];
  let unread = "";
  for (const gpu of snapshot.gpus) {
    if (gpu.processes === null) unread = gpu.missing.processes || "";
    for (const p of gpu.processes || []) list.push({...p, gpu: gpu.index});
  }
  const key = state.sort;
  list.sort((a, b) => {
    const [x, y] = [a[key], b[key]];
    if (x === y) return a.pid - b.pid;
    if (x === null) return 1;
    if (y === null) return -1;
    return (x < y ? -1 : 1) * (state.down ? -1 : 1);
  });
  by("process-count").textContent = list.length ? String(list.length) : "";
  const rows = by("process-rows");
  rows.replaceChildren();
  if (!list.length) {
    const cell = node("td", "quiet", unread ? `The list could not be read: ${unread}.` : "No process uses a GPU.", node("tr", null, null, rows));
    cell.colSpan = COLUMNS.length;
  }
  for (const p of list) {
    const row = node("tr", null, null, rows);
    for (const [, , text, className] of COLUMNS) node("td", className, text(p), row);
  }
}

function showSummary(snapshot) {
  const gpus = snapshot.gpus.filter((g) => !g.lost);
  // Of the GPUs that tell it; null where none does.
  const sum = (key) => gpus.reduce((total, g) => g[key] === null ? total : (total || 0) + g[key], null);
  const busy = gpus.filter((g) => g.gpu_utilization_percent !== null);
  const [used, total, power] = ["memory_used_bytes", "memory_total_bytes", "power_watts"].map(sum);
  const tiles = [
    ["GPUs", String(snapshot.gpus.length), gpus.length < snapshot.gpus.length ? `${snapshot.gpus.length - gpus.length} lost` : ""],
    ["Mean busy", busy.length ? percent(busy.reduce((t, g) => t + g.gpu_utilization_percent, 0) / busy.length) : DASH, ""],
    ["Memory used", used === null ? DASH : (used / GIB).toFixed(0), total === null ? "" : `of ${(total / GIB).toFixed(0)} GiB`],
    ["Power", fixed(power, 0, ""), power === null ? "" : "W"],
    // One process may use several GPUs.
    ["Processes", String(new Set(gpus.flatMap((g) => (g.processes || []).map((p) => p.pid))).size), ""],
    ["Alerts", String(snapshot.alerts.length), ""],
  ];
  const summary = by("summary");
  summary.replaceChildren();
  summary.hidden = !snapshot.gpus.length;
  for (const [name, value, unit] of tiles) {
    const tile = node("div", "tile", null, summary);
    node("div", "name", name, tile);
    const line = node("div", "value", value, tile);
    if (unit) node("small", null, " " + unit, line);
  }
}

function showAlerts(snapshot) {
  const list = by("alerts");
  list.replaceChildren();
  list.hidden = !snapshot.alerts.length;
  for (const alert of snapshot.alerts) {
    const item = node("li", alert.severity === "critical" ? "bad" : "warn", null, list);
    node("b", null, `GPU ${alert.gpu} \u00b7 ${alert.alert.replaceAll("_", " ")}`, item);
    item.append(alert.text);
  }
}

function show(snapshot, history) {
  state.snapshot = snapshot;
  const parts = [snapshot.host, snapshot.driver_version && "driver " + snapshot.driver_version,
                 snapshot.cuda_version && "CUDA " + snapshot.cuda_version];
  by("machine").textContent = parts.filter(Boolean).join(" \u00b7 ");
  document.title = (snapshot.host ? snapshot.host + " \u00b7 " : "") + "Tracefire monitor";
  by("problem").hidden = !snapshot.problem;
  by("problem").textContent = snapshot.problem || "";
  showAlerts(snapshot);
  showSummary(snapshot);
  const parent = by("gpus");
  parent.classList.toggle("one", snapshot.gpus.length === 1);
  parent.classList.toggle("many", snapshot.gpus.length > MANY);
  const wanted = new Set(snapshot.gpus.map((g) => g.index));
  for (const [index, card] of state.cards) {
    if (!wanted.has(index)) { card.root.remove(); state.cards.delete(index); }
  }
  for (const gpu of snapshot.gpus) {
    if (!state.cards.has(gpu.index)) state.cards.set(gpu.index, new Card(parent, gpu.index));
    state.cards.get(gpu.index).update(gpu);
  }
  for (const gpu of history.gpus) {
    const card = state.cards.get(gpu.index);
    if (card) card.chart(gpu);
  }
  showProcesses(snapshot);
}

function showLive(snapshot) {
  const live = by("live");
  const age = (Date.now() - state.seen) / 1000;
  const pending = snapshot ? snapshot.read_pending_seconds : 0;
  const bad = state.failures > 1 || pending > 10;
  live.className = "live " + (bad ? "off" : "on");
  document.body.classList.toggle("stale", bad);
  live.textContent = state.failures > 1 ? `no answer for ${age.toFixed(0)} s`
    : pending > 10 ? `NVML hangs, ${pending.toFixed(0)} s`
    : "live \u00b7 " + new Date(snapshot.time).toLocaleTimeString();
}

async function get(path) {
  const answer = await fetch(path, {signal: AbortSignal.timeout(8000), cache: "no-store"});
  return answer.json();
}

// The history of many GPUs is much to send: it is asked for where a chart is in sight.
function wantsHistory() {
  return !state.snapshot || state.snapshot.gpus.length <= MANY || [...state.cards.values()].some((card) => !card.closed());
}

async function refreshNow() {
  if (!document.hidden) {
    try {
      const [snapshot, history] = await Promise.all([get("/api/v1/snapshot"),
        wantsHistory() ? get(`/api/v1/history?seconds=${state.seconds}&points=300`) : {gpus: []}]);
      state.failures = 0;
      if (snapshot.gpus) {
        state.seen = Date.now();
        show(snapshot, history);
        showLive(snapshot);
      }
    } catch (error) {
      state.failures += 1;
      showLive(state.snapshot);
    }
  }
}

async function refresh() {
  await refreshNow();
  setTimeout(refresh, PERIOD);
}

for (const button of document.querySelectorAll(".range button")) {
  button.addEventListener("click", () => {
    state.seconds = Number(button.dataset.seconds);
    for (const other of document.querySelectorAll(".range button")) {
      other.setAttribute("aria-pressed", String(other === button));
    }
  });
}
showProcessHead();
refresh();

// SPDX-License-Identifier: Apache-2.0
// Line charts as SVG. Text from outside never becomes markup: only textContent and attributes.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

function svgNode(name, attributes, parent) {
  const node = document.createElementNS(SVG, name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  if (parent) parent.appendChild(node);
  return node;
}

// A round number at or above `value`.
function roundUp(value) {
  if (!(value > 0)) return 1;
  const power = Math.pow(10, Math.floor(Math.log10(value)));
  for (const step of [1, 1.2, 1.6, 2, 2.4, 3, 4, 5, 6, 8, 10]) {
    if (value <= step * power * 1.0000001) return step * power;
  }
  return 10 * power;
}

// One chart. `spec`: title, series [{key, label}], top (fixed maximum) or null, least (smallest maximum
// where there is no top), axis and text (value -> words).
class Chart {
  constructor(parent, spec) {
    this.spec = spec;
    this.figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const title = document.createElement("span");
    title.textContent = spec.title;
    caption.appendChild(title);
    if (spec.series.length > 1) {
      spec.series.forEach((series, i) => {
        const key = document.createElement("span");
        key.className = i === 0 ? "key" : "key second";
        key.textContent = series.label;
        caption.appendChild(key);
      });
    }
    this.read = document.createElement("span");
    this.read.className = "read";
    caption.appendChild(this.read);
    this.svg = svgNode("svg", {role: "img", "aria-label": spec.title});
    this.figure.append(caption, this.svg);
    parent.appendChild(this.figure);
    this.hover = null;
    this.svg.addEventListener("pointermove", (event) => {
      const box = this.svg.getBoundingClientRect();
      this.hover = (event.clientX - box.left) / box.width;
      this.draw();
    });
    this.svg.addEventListener("pointerleave", () => {
      this.hover = null;
      this.draw();
    });
  }

  // times: ms since 1970; columns: key -> values, null for a gap; limit: a line, or null.
  update(times, columns, seconds, limit) {
    this.data = {times, columns, seconds, limit};
    this.draw();
  }

  draw() {
    if (!this.data) return;
    const {times, columns, seconds, limit} = this.data;
    const box = this.svg.getBoundingClientRect();
    const width = Math.max(160, Math.round(box.width));
    const height = Math.max(80, Math.round(box.height));
    const right = 6, top = 8, bottom = 18;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren();
    const end = times.length ? times[times.length - 1] : Date.now();
    const begin = end - seconds * 1000;
    let most = this.spec.top;
    if (!most) {
      most = Math.max(limit || 0, this.spec.least || 0);
      for (const series of this.spec.series) {
        for (const value of columns[series.key]) if (value !== null) most = Math.max(most, value);
      }
      most = roundUp(most);
    }
    const labels = [0, 0.5, 1].map((part) => this.spec.axis(most * part));
    const left = 12 + 6.6 * Math.max(6, ...labels.map((label) => label.length));
    const x = (time) => left + (width - left - right) * (time - begin) / (end - begin);
    const y = (value) => top + (height - top - bottom) * (1 - Math.min(value, most) / most);
    [0, 0.5, 1].forEach((part, i) => {
      const at = Math.round(y(most * part)) + 0.5;
      svgNode("line", {class: "grid", x1: left, x2: width - right, y1: at, y2: at}, this.svg);
      const label = svgNode("text", {x: left - 6, y: at + 4, "text-anchor": "end"}, this.svg);
      label.textContent = labels[i];
    });
    for (const part of [0, 1]) {
      const label = svgNode("text", {x: part ? width - right : left, y: height - 4,
                                     "text-anchor": part ? "end" : "start"}, this.svg);
      label.textContent = part ? "now" : seconds >= 120 ? `${seconds / 60} min ago` : `${seconds} s ago`;
    }
    if (limit && limit <= most) {
      const at = y(limit);
      svgNode("line", {class: "limit", x1: left, x2: width - right, y1: at, y2: at}, this.svg);
    }
    this.spec.series.forEach((series, i) => this.line(times, columns[series.key], x, y, begin, i));
    this.readOut(times, columns, begin, end, left, right, width, x, top, height - bottom);
  }

  line(times, values, x, y, begin, index) {
    let path = "", area = "", start = null, last = null;
    const close = () => {
      if (start !== null) area += `L${last} ${y(0).toFixed(1)}L${start} ${y(0).toFixed(1)}Z`;
      start = null;
    };
    for (let i = 0; i < times.length; ++i) {
      if (times[i] < begin) continue;
      if (values[i] === null) {
        close();
        continue;
      }
      const at = `${x(times[i]).toFixed(1)} ${y(values[i]).toFixed(1)}`;
      path += (start === null ? "M" : "L") + at;
      area += (start === null ? "M" : "L") + at;
      if (start === null) start = x(times[i]).toFixed(1);
      last = x(times[i]).toFixed(1);
    }
    close();
    if (index === 0 && area) svgNode("path", {class: "area", d: area}, this.svg);
    if (path) svgNode("path", {class: index === 0 ? "first" : "second", d: path}, this.svg);
  }

  // The value under the pointer, else the newest.
  readOut(times, columns, begin, end, left, right, width, x, top, bottom) {
    let at = times.length - 1;
    let when = "";
    if (this.hover !== null && times.length) {
      const time = begin + (end - begin) * (this.hover * width - left) / (width - left - right);
      at = times.reduce((best, t, i) => Math.abs(t - time) < Math.abs(times[best] - time) ? i : best, at);
      svgNode("line", {class: "cursor", x1: x(times[at]), x2: x(times[at]), y1: top, y2: bottom}, this.svg);
      when = new Date(times[at]).toLocaleTimeString() + "  ";
    }
    const words = this.spec.series.map((series) => {
      const value = at < 0 ? null : columns[series.key][at];
      return value === null ? "\u2013" : this.spec.text(value);
    });
    this.read.textContent = when + words.join(" \u00b7 ");
  }
}

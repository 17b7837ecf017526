// Numbers, times and elements. Text from telemetry reaches the page only as text nodes, never as markup.

const NBSP = "\u202f";

/** Makes an element: `h("td", { class: "number" }, "7")`. */
function h(tag, props, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "class") element.className = value;
    else if (key === "style") element.style.cssText = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children.flat()) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

/** Sets the text of an element only where it changed, so that selections survive. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Replaces the children of an element. */
function fill(element, ...children) {
  element.replaceChildren(...children.flat().filter(child => child !== null && child !== undefined && child !== false));
}

const SI = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const IEC = [[2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];

/** A number with about `digits` significant digits. */
function plain(value, digits = 4) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e15 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace("e+", "e");
  if (size >= 10 ** digits) return Math.round(value).toLocaleString("en-US");
  return String(Number(value.toPrecision(digits)));
}

/** The name of an annotation unit: `{token}/s` is `token/s`. */
function unitName(unit) {
  return unit.replace(/[{}]/g, "");
}

/** A value with its unit, as two texts. */
function parts(value, unit, digits = 4) {
  if (typeof value === "string") return [value === "NaN" ? "NaN" : value === "inf" ? "∞" : "−∞", ""];
  if (value === null || value === undefined) return ["–", ""];
  if (Number.isNaN(value)) return ["NaN", ""];
  if (unit === "1") return [plain(value * 100, Math.min(digits, 3)), "%"];
  if (unit === "s") return seconds(value, digits);
  if (unit === "By" || unit === "By/s") {
    const rate = unit === "By/s" ? "/s" : "";
    for (const [size, name] of IEC) if (Math.abs(value) >= size) return [plain(value / size, 3), name + rate];
    return [plain(value, 3), "B" + rate];
  }
  if (unit === "Cel") return [plain(value, 3), "°C"];
  const name = unit === "Hz" || unit === "W" || unit === "J" ? unit : /^\{[^}]*\}$/.test(unit) && !/token|sample|flop|byte/.test(unit) ? "" : unitName(unit);
  const isPlain = name === "" || !/[a-zA-Z]/.test(name);
  if (!isPlain && Math.abs(value) >= 1e4 || isPlain && Math.abs(value) >= 1e7) {
    for (const [size, prefix] of SI) {
      if (Math.abs(value) >= size) return [plain(value / size, 3), name.includes("token") || name.includes("sample") || isPlain ? prefix + (name && NBSP + name) : prefix + name];
    }
  }
  return [plain(value, digits), name === "{step}" ? "" : name];
}

function seconds(value, digits = 3) {
  const size = Math.abs(value);
  if (size === 0) return ["0", "s"];
  if (size < 1e-3) return [plain(value * 1e6, 3), "µs"];
  if (size < 1) return [plain(value * 1e3, Math.min(digits, 3)), "ms"];
  if (size < 120) return [plain(value, 3), "s"];
  return [duration(value), ""];
}

/** A value with its unit as one text. */
function show(value, unit, digits) {
  const [number, name] = parts(value, unit, digits);
  return name ? number + NBSP + name : number;
}

/** `2 h 05 min`. */
function duration(value) {
  const total = Math.max(0, Math.round(value));
  const days = Math.floor(total / 86400), hours = Math.floor(total / 3600) % 24;
  const minutes = Math.floor(total / 60) % 60, rest = total % 60;
  const two = number => String(number).padStart(2, "0");
  if (days) return `${days} d ${hours} h`;
  if (hours) return `${hours} h ${two(minutes)} min`;
  if (minutes >= 10) return `${minutes} min`;
  if (minutes) return `${minutes} min ${two(rest)} s`;
  return `${rest} s`;
}

/** The time of the day, with the date where it is not today. */
function clockTime(millis, now) {
  if (!millis) return "–";
  const date = new Date(millis), today = new Date(now);
  const time = date.toLocaleTimeString("en-GB");
  if (date.toDateString() === today.toDateString()) return time;
  return `${date.toLocaleDateString("en-CA")} ${time}`;
}

/** `gpu_throttled` as people write it. */
function words(name) {
  const text = name.replace(/[._]/g, " ").replace(/\bgpu\b/gi, "GPU").replace(/\bxid\b/gi, "XID").replace(/\bnonfinite\b/, "non-finite");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** The values of a label without their keys: `lm, 2`. */
function labelText(label) {
  return label.split(", ").map(part => part.includes("=") ? part.slice(part.indexOf("=") + 1) : part).join(", ");
}

function median(values) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return NaN;
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function quantile(values, share) {
  const sorted = values.filter(Number.isFinite).sort((a, b) => a - b);
  if (!sorted.length) return NaN;
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

/** A small curve as SVG. */
function sparkline(values, width, height, className) {
  const finite = values.filter(Number.isFinite);
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "spark " + (className || ""));
  svg.setAttribute("aria-hidden", "true");
  svg.setAttribute("preserveAspectRatio", "none");
  if (finite.length < 2) return svg;
  const low = Math.min(...finite), high = Math.max(...finite), span = high - low || 1;
  let path = "", pen = false;
  values.forEach((value, place) => {
    if (!Number.isFinite(value)) { pen = false; return; }
    const x = place / (values.length - 1) * width, y = height - 1.5 - (value - low) / span * (height - 3);
    path += `${pen ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
    pen = true;
  });
  const line = document.createElementNS("http://www.w3.org/2000/svg", "path");
  line.setAttribute("d", path);
  line.setAttribute("vector-effect", "non-scaling-stroke");
  svg.append(line);
  return svg;
}

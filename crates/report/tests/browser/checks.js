// Looks at a page as people do: at three widths, with everything folded and unfolded. `page` is the page's text. What is wrong goes
// to `#result`, a line each; so do sizes and times, behind "measured:".
const WIDTHS = [390, 768, 1280];
const lines = [];
const told = new Set();
let where = "";

function wrong(what) {
  const line = `${where}: ${what}`;
  if (!told.has(line)) {
    told.add(line);
    lines.push(line);
  }
}

function named(element) {
  return `${element.tagName.toLowerCase()}${element.id ? "#" + element.id : ""} "${element.textContent.trim().slice(0, 40)}"`;
}

function channels(colour) {
  const found = colour.match(/[\d.]+/g);
  return found ? found.map(Number) : [0, 0, 0, 0];
}

// WCAG 2's relative luminance.
function luminance([red, green, blue]) {
  const [r, g, b] = [red, green, blue].map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (high + 0.05) / (low + 0.05);
}

function background(view, element) {
  for (let at = element; at; at = at.parentElement) {
    const colour = channels(view.getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] > 0) {
      return colour;
    }
  }
  return [255, 255, 255];
}

function checkContrast(view, doc) {
  const walker = doc.createTreeWalker(doc.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const isText = walker.currentNode.textContent.trim() && !["SCRIPT", "STYLE", "title"].includes(element.tagName);
    if (!isText || !element.checkVisibility()) {
      continue;
    }
    const style = view.getComputedStyle(element);
    const ink = channels(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const ratio = contrast(ink, background(view, element));
    if (ratio < 4.5) {
      wrong(`contrast ${ratio.toFixed(2)} of ${named(element)}`);
    }
  }
}

function checkWidth(view, doc) {
  const width = doc.documentElement.clientWidth;
  if (doc.documentElement.scrollWidth > width) {
    wrong(`the page is ${doc.documentElement.scrollWidth} wide on ${width}`);
    for (const element of doc.body.querySelectorAll("*")) {
      const box = element.getBoundingClientRect();
      if (box.right > width + 1 && !element.closest(".scroll, pre, svg")) {
        wrong(`${named(element)} ends at ${box.right.toFixed(0)}`);
      }
    }
  }
  for (const element of doc.body.querySelectorAll("*")) {
    const scrolls = ["auto", "scroll"].includes(view.getComputedStyle(element).overflowX);
    if (scrolls && element.scrollWidth > element.clientWidth && element.tabIndex < 0) {
      wrong(`${named(element)} scrolls and the keyboard cannot reach it`);
    }
  }
}

function checkNames(doc) {
  for (const [selector, count] of [["h1", 1], ["main", 1], ["body > header", 1], ["body > footer", 1]]) {
    if (doc.querySelectorAll(selector).length !== count) {
      wrong(`${doc.querySelectorAll(selector).length} of ${selector}`);
    }
  }
  let level = 1;
  for (const heading of doc.querySelectorAll("h1, h2, h3, h4")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) {
      wrong(`${named(heading)} skips a level`);
    }
    level = next;
  }
  for (const element of doc.querySelectorAll("button, a, summary, th")) {
    if (!element.textContent.trim()) {
      wrong(`${named(element)} has no name`);
    }
  }
  for (const element of doc.querySelectorAll("svg, [role=region]")) {
    if (!element.getAttribute("aria-label")) {
      wrong(`${named(element)} has no name`);
    }
  }
  const skip = doc.querySelector("body a");
  if (!skip || !doc.querySelector(skip.getAttribute("href"))) {
    wrong("the first link does not skip to the answer");
  }
  const ids = [...doc.querySelectorAll("[id]")].map((element) => element.id);
  ids.filter((id, index) => ids.indexOf(id) !== index).forEach((id) => wrong(`two elements are called ${id}`));
}

// Text of a chart that leaves the chart is cut off.
function checkCharts(doc) {
  for (const text of doc.querySelectorAll("svg text")) {
    const [inner, outer] = [text.getBoundingClientRect(), text.closest("svg").getBoundingClientRect()];
    if (inner.width && (inner.left < outer.left - 1 || inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1)) {
      wrong(`${named(text)} leaves its chart`);
    }
  }
}

function checkCopying(view, doc) {
  for (const button of doc.querySelectorAll("button[data-copy]")) {
    const lines = doc.getElementById(button.dataset.copy).textContent;
    button.click();
    if (button.hidden || !button.nextElementSibling.textContent) {
      wrong(`${named(button)} says nothing when it is pressed`);
    }
    if (view.getSelection().toString().trim() !== lines.trim()) {
      wrong(`${named(button)} selects "${view.getSelection()}"`);
    }
  }
}

function check(frame, width, began) {
  const [view, doc] = [frame.contentWindow, frame.contentDocument];
  const loaded = performance.now() - began;
  where = `${width}`;
  checkWidth(view, doc);
  checkNames(doc);
  checkContrast(view, doc);
  const height = doc.documentElement.scrollHeight;
  const drawn = performance.now() - began;
  lines.push(`measured: ${width} wide, ${height} high, loaded in ${loaded.toFixed(0)} ms, checked in ${drawn.toFixed(0)} ms`);
  doc.querySelectorAll("details").forEach((details) => (details.open = true));
  where = `${width} unfolded`;
  checkWidth(view, doc);
  checkContrast(view, doc);
  checkCharts(doc);
  checkCopying(view, doc);
}

// Each frame is made while the one before ends its loading, so that the browser waits for the last.
function look(widths) {
  if (widths.length === 0) {
    document.getElementById("result").textContent = lines.concat("end").join("\n");
    return;
  }
  const frame = document.createElement("iframe");
  frame.style = `border: 0; width: ${widths[0]}px; height: 800px`;
  const began = performance.now();
  frame.onload = () => {
    // Layout and style are part of loading.
    frame.contentDocument.documentElement.getBoundingClientRect();
    check(frame, widths[0], began);
    if (widths.length === 1 && typeof axeSource === "string") {
      axeLook(frame).then(() => look([]));
    } else {
      look(widths.slice(1));
      frame.remove();
    }
  };
  frame.srcdoc = page;
  document.body.append(frame);
}

// With axe-core, which is not part of this project: `make axe`.
async function axeLook(frame) {
  const script = frame.contentDocument.createElement("script");
  script.textContent = axeSource;
  frame.contentDocument.head.append(script);
  const { violations, passes } = await frame.contentWindow.axe.run(frame.contentDocument);
  where = "axe";
  for (const { id, impact, nodes } of violations) {
    wrong(`${impact}: ${id}: ${nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(" | ")}`);
  }
  lines.push(`measured: axe ${frame.contentWindow.axe.version}, ${passes.length} rules passed`);
}

look(WIDTHS);

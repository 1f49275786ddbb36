// Making elements. Text only ever enters as text: nothing here, and nothing elsewhere on the
// page, parses a string as markup.

const SVG_SPACE = "http://www.w3.org/2000/svg";

export function el(tag, attributes, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

export function shape(tag, attributes, ...children) {
  return furnish(document.createElementNS(SVG_SPACE, tag), attributes, children);
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") listen(node, value);
    else if (name === "css") style(node, value);
    else if (name === "text") node.textContent = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(
    ...children.filter((child) => child !== null && child !== undefined && child !== false)
  );
  return node;
}

function listen(node, events) {
  for (const [event, listener] of Object.entries(events)) node.addEventListener(event, listener);
}

// Through the object model, since the content policy forbids style attributes.
export function style(node, values) {
  for (const [property, value] of Object.entries(values)) node.style.setProperty(property, value);
}

export function within(value, low, high) {
  return Math.min(Math.max(value, low), high);
}

// Calls at most once per frame, with the latest arguments.
export function perFrame(action) {
  let pending = null;
  return (...values) => {
    if (pending === null) {
      requestAnimationFrame(() => {
        const latest = pending;
        pending = null;
        action(...latest);
      });
    }
    pending = values;
  };
}

export function whenIdle(action) {
  if (window.requestIdleCallback) window.requestIdleCallback(action, { timeout: 500 });
  else setTimeout(action, 30);
}

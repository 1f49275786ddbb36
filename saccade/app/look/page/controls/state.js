// What is chosen, kept in the address after the #, so that a view can be sent to someone.

export class State {
  constructor(defaults) {
    this.defaults = defaults;
    this.values = { ...defaults, ...this.#read() };
    this.listeners = new Set();
    window.addEventListener("hashchange", () => this.#adopt(this.#read()));
  }

  get(key) {
    return this.values[key];
  }

  set(patch) {
    const changed = Object.keys(patch).filter((key) => !same(this.values[key], patch[key]));
    if (changed.length === 0) return;
    Object.assign(this.values, patch);
    this.#write();
    this.#tell(new Set(changed));
  }

  // Everything back to where it began but what `kept` names: another document has come.
  reset(...kept) {
    const keep = Object.fromEntries(kept.map((key) => [key, this.values[key]]));
    this.values = { ...this.defaults, ...keep };
    this.#write();
  }

  watch(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  #tell(changed) {
    for (const listener of [...this.listeners]) listener(changed);
  }

  #adopt(read) {
    const next = { ...this.defaults, ...read };
    const changed = Object.keys(next).filter((key) => !same(this.values[key], next[key]));
    this.values = next;
    if (changed.length) this.#tell(new Set(changed));
  }

  #read() {
    const found = {};
    for (const [key, text] of new URLSearchParams(location.hash.slice(1))) {
      if (key in this.defaults) found[key] = parsed(text, this.defaults[key]);
    }
    return found;
  }

  #write() {
    const shown = new URLSearchParams();
    for (const [key, value] of Object.entries(this.values)) {
      if (!same(value, this.defaults[key])) shown.set(key, String(value));
    }
    try {
      history.replaceState(null, "", `#${shown}`);
    } catch {
      // Some frames (srcdoc in a notebook) have no address to write to; the page works without.
    }
  }
}

function same(a, b) {
  return String(a) === String(b);
}

function parsed(text, like) {
  if (text === "null") return null;
  // "007" is a name.
  if (/^-?\d+(\.\d+)?$/.test(text) && String(Number(text)) === text) return Number(text);
  if (/^\d+(,\d+)+$/.test(text)) return text.split(",").map(Number);
  if (typeof like === "boolean") return text === "true";
  return text;
}

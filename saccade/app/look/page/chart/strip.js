// The text itself, token by token. One listener serves all tokens, however many there are.

import { inkOn, shade } from "../controls/colour.js";
import { el, style } from "../controls/dom.js";
import { isControl, runsLeft } from "../controls/format.js";

const LEAST_TINT = 0.01;

function tokenNode(token, i, axis) {
  const generated = i >= (axis.prompt ?? axis.tokens.length);
  const shown = token.replace(/\n/g, "↵\n").replace(/\t/g, "⇥");
  const text = shown.trim() ? shown.replace(/^ +/, "") : shown;
  const how = isControl(token) ? "token control" : generated ? "token made" : "token";
  return el("span", {
    class: how, "data-at": i, id: `token-${i}`, role: "option", text,
  });
}

// Outside the token's box, so that boxes do not touch the word before. Cells have no blanks of theirs.
function spaceBefore(token, { kind }) {
  if (kind === "grid") return " ";
  return token.trim() ? /^ */.exec(token)[0] : "";
}

function sizeOf(count) {
  if (count > 400) return "strip tall";
  return count > 120 ? "strip" : "strip large";
}

export class TokenStrip {
  // point(index | null) as the pointer moves, choose(index) on a click, move(steps) on arrow keys.
  // Of several texts on an axis, one may be shown: the tokens from … to.
  constructor(axis, { point, choose, move }, [from, to] = [0, axis.tokens.length], label = "the text") {
    Object.assign(this, { point, choose, move, chosen: null, asked: null, tinted: [] });
    const tokens = axis.tokens.slice(from, to);
    this.way = runsLeft(tokens) ? "rtl" : "ltr";
    this.nodes = [];
    tokens.forEach((token, i) => { this.nodes[from + i] = tokenNode(token, from + i, axis); });
    this.root = el("div", {
      class: sizeOf(tokens.length), tabindex: 0, role: "listbox",
      "aria-label": `Tokens of ${label}`, dir: this.way,
    }, ...tokens.flatMap((token, i) => [spaceBefore(token, axis), this.nodes[from + i]]));
    this.#listen();
  }

  #listen() {
    const at = (event) => {
      const node = event.target.closest(".token");
      return node ? Number(node.dataset.at) : null;
    };
    this.root.addEventListener("pointerover", (event) => {
      if (at(event) !== null) this.point(at(event));
    });
    this.root.addEventListener("pointerleave", () => this.point(null));
    this.root.addEventListener("click", (event) => {
      if (at(event) !== null) this.choose(at(event));
    });
    this.root.addEventListener("keydown", (event) => {
      const right = this.way === "rtl" ? -1 : 1;
      const by = { ArrowLeft: -right, ArrowRight: right, ArrowUp: -10, ArrowDown: 10 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      this.move(by);
    });
  }

  // The chosen token and the one under the pointer are outlined: not by colour alone.
  mark(chosen, asked = chosen) {
    this.nodes[this.chosen]?.classList.remove("chosen");
    this.nodes[this.chosen]?.removeAttribute("aria-selected");
    this.nodes[this.asked]?.classList.remove("asked");
    Object.assign(this, { chosen, asked });
    this.nodes[chosen]?.classList.add("chosen");
    this.nodes[chosen]?.setAttribute("aria-selected", "true");
    this.nodes[asked]?.classList.add("asked");
    this.root.setAttribute("aria-activedescendant", `token-${chosen}`);
  }

  tint(pairs) {
    for (const node of this.tinted) {
      style(node, { "background-color": "", color: "" });
      node.classList.remove("lit");
    }
    const lit = pairs.filter(([place, weight]) => this.nodes[place] && weight >= LEAST_TINT);
    this.tinted = lit.map(([place, weight]) => {
      const node = this.nodes[place];
      style(node, { "background-color": shade(weight, "sqrt"), color: inkOn(weight, "sqrt") });
      node.classList.add("lit");
      return node;
    });
  }

  dim(from) {
    this.nodes.forEach((node, i) => node.classList.toggle("later", i > from));
  }

  reveal(i) {
    const node = this.nodes[i];
    if (!node || this.root.scrollHeight <= this.root.clientHeight) return;
    this.root.scrollTop = node.offsetTop - this.root.clientHeight / 2;
  }
}

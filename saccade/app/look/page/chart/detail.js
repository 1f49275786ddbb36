// One head in full: its matrix with margins if it is short enough to label, else the long map.

import {
  columnSums, extent, isSelf, merged, rowEntropies, sitesMatrix, withoutSink
} from "../document/attention.js";
import { cellGroups, groupHolding, groupsOf, tokenAt } from "../document/axis.js";
import { badge } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { quoted, tokenText } from "../controls/format.js";
import { columnGaze, rowGaze } from "../document/gaze.js";
import { heatmap } from "./heatmap.js";
import { LongMap } from "./long.js";
import { columnWords, rowWords } from "../controls/readout.js";
import { mapTools } from "./tools.js";

export const LONGEST_LABELLED = 120; // tokens a side

export function isLong(look, site) {
  return Math.max(...extent(look, site)) > LONGEST_LABELLED;
}

// Cells that a causal or sliding mask forbids for all their pieces are left blank.
export function openCells(site, rows, columns) {
  const reach = site.reach ?? null;
  if (!site.causal && reach === null) return null;
  return (i, j) => {
    const [row, column] = [rows[i], columns[j]];
    if (site.causal && column.from >= row.to) return false;
    return reach === null || (
      column.from - (row.to - 1) <= reach && row.from - (column.to - 1) <= reach
    );
  };
}

// {matrix, rows, columns}: merged into words or not, with the groups on both sides.
export function unitMatrix(look, site, matrix, unit) {
  const [high, wide] = matrix.cell;
  const coarse = high > 1 || wide > 1;
  const rows = coarse ? cellGroups(
    look.axes[site.rows], high, matrix.rows
  ) : groupsOf(look.axes[site.rows], unit, matrix.rows);
  const columns = coarse ? cellGroups(
    look.axes[site.columns], wide, matrix.columns
  ) : groupsOf(look.axes[site.columns], unit, matrix.columns);
  return { matrix: unit === "words" ? merged(matrix, rows, columns) : matrix, rows, columns };
}

export class HeadDetail {
  // choose({row, column}) in pieces; say(text) for the read-out.
  constructor({ arrays, look, state, say, choose, askExact, title }) {
    Object.assign(this, { arrays, look, state, say, choose });
    this.badge = badge();
    this.map = heatmap({
      label: "Attention of one head", point: (place) => this.#point(place),
      choose: (place) => this.#choose(place),
    });
    this.long = new LongMap({
      state, askExact, point: (cell) => this.#pointLong(cell), choose: (cell) => choose?.(cell),
    });
    const tables = el("div");
    const current = () => (this.isLong ? this.long : this.map);
    this.tools = mapTools(
      { model: () => current().model(), get canvas() { return current().canvas; } }, tables, title
    );
    this.root = el("div", { class: "detail" }, this.map.root, this.long.root, tables);
  }

  async show(sites, head) {
    Object.assign(this, { sites, head });
    const [site] = sites;
    this.isLong = isLong(this.look, site);
    this.map.root.hidden = this.isLong;
    this.long.root.hidden = !this.isLong;
    this.badge.hidden = this.isLong;
    if (this.isLong) await this.long.show(this.arrays, this.look, site, head);
    else await this.#showShort(site);
    this.tools.refresh();
  }

  async #showShort(site) {
    let matrix = await sitesMatrix(this.arrays, this.look, this.sites, this.head);
    if (!matrix) return;
    this.badge.show(matrix.exactness);
    if (this.state.get("sink") && isSelf(site)) matrix = withoutSink(matrix);
    const unit = matrix.cell[0] === 1 && matrix.cell[1] === 1 ? this.state.get("unit") : "pieces";
    Object.assign(this, unitMatrix(this.look, site, matrix, unit));
    this.map.draw({
      matrix: this.matrix, rowLabels: this.rows.map(
        ({ label }) => label
      ), columnLabels: this.columns.map(({ label }) => label),
      other: this.matrix.rest.some(
        (rest) => rest > 0.005
      ), scale: this.state.get("scale"), largest: 40, focus: this.focus,
      left: rowEntropies(this.matrix), top: columnSums(this.matrix), open: openCells(
        site, this.rows, this.columns
      ),
    });
  }

  // Marks the row or the column of a piece, in whichever map is shown.
  mark(piece, along = "row") {
    if (this.isLong) { this.long.mark(piece, along); return; }
    const at = groupHolding((along === "row" ? this.rows : this.columns) ?? [], piece);
    this.focus = at < 0 ? null : {
      row: along === "row" ? at : null, column: along === "row" ? null : at
    };
    this.map.focus(this.focus);
  }

  async refresh(changed) {
    if (!this.sites) return;
    if (this.isLong) {
      if (
        ["zoom", "map", "scale", "sink"].some((key) => changed.has(key))
      ) await this.long.refresh();
    } else if (
      ["unit", "scale", "sink"].some((key) => changed.has(key))
    ) await this.#showShort(this.sites[0]);
    this.tools.refresh();
  }

  repaint() {
    if (this.isLong) this.long.refresh();
    else this.map.repaint();
  }

  #point(place) {
    this.map.focus(place ?? this.focus ?? null);
    if (!place || !this.matrix) return;
    const name = (groups) => (at) => groups[at].label;
    if (place.row !== null) {
      this.say(
        rowWords(this.rows[place.row].label, rowGaze(this.matrix, place.row), name(this.columns)),
        this.matrix.exactness
      );
    } else {
      const gaze = columnGaze(this.matrix, place.column);
      this.say(
        columnWords(
          this.columns[place.column].label, gaze, name(this.rows),
          columnSums(this.matrix)[place.column]
        ),
        this.matrix.exactness
      );
    }
  }

  #pointLong(cell) {
    if (!cell || cell.value === null) return;
    const site = this.sites[0];
    const name = (axis, at) => quoted(tokenText(tokenAt(this.look.axes[axis], at)));
    const [row, column] = [name(site.rows, cell.row), name(site.columns, cell.column)];
    this.say(
      `${row} (${cell.row}) looks at ${column} (${cell.column}): `
        + `${cell.value.toFixed(4)} · ${cell.exactness.text}`,
      cell.exactness
    );
  }

  #choose(place) {
    this.choose?.(
      {
        row: place.row === null ? null : this.rows[place.row].from,
        column: place.column === null ? null : this.columns[place.column].from
      }
    );
  }
}

// Table, CSV, SVG and PNG of whatever matrix is shown.

import { button } from "../controls/controls.js";
import { pageColour } from "../controls/colour.js";
import { el } from "../controls/dom.js";
import { copyText, download, mapCsv, mapSvg, mapTable } from "./export.js";

function onPaper(canvas) {
  const copy = el("canvas", { width: canvas.width, height: canvas.height });
  const pen = copy.getContext("2d");
  pen.fillStyle = pageColour("card");
  pen.fillRect(0, 0, copy.width, copy.height);
  pen.drawImage(canvas, 0, 0);
  return copy;
}

// map: {model(), canvas}; `title()` names the files and heads the picture.
export function mapTools(map, host, title) {
  const table = el("div", { class: "table-host", hidden: true });
  host.append(table);
  const stem = () => title().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60);
  const name = (ending) => `${stem()}.${ending}`;
  const showTable = button("Table", () => {
    table.hidden = !table.hidden;
    showTable.setAttribute("aria-pressed", String(!table.hidden));
    refresh();
  }, { "aria-pressed": "false", class: "button quiet table-button" });
  const refresh = () => {
    if (!table.hidden && map.model()) table.replaceChildren(mapTable(map.model(), title()));
  };
  const copy = button("Copy CSV", async () => {
    if (!map.model()) return;
    await copyText(mapCsv(map.model()));
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy CSV"; }, 1500);
  }, { class: "button quiet" });
  const svg = button("SVG", () => {
    if (map.model()) download(
      new Blob([mapSvg(map.model(), title())], { type: "image/svg+xml" }), name("svg")
    );
  }, { class: "button quiet", "aria-label": "Download SVG" });
  const png = button("PNG", () => {
    onPaper(map.canvas).toBlob((blob) => download(blob, name("png")), "image/png");
  }, { class: "button quiet", "aria-label": "Download PNG" });
  return { bar: el("div", { class: "export" }, showTable, copy, svg, png), refresh };
}

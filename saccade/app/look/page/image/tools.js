// The numbers of maps on an image, for those who want them.

import { button } from "../controls/controls.js";
import { el } from "../controls/dom.js";
import { copyText, download, mapCsv, mapTable } from "../chart/export.js";

// Table, CSV and PNG of maps. `model()` is what tables and CSV are made of.
export function filmTools({ model, title, sheet }) {
  const table = el("div", { class: "table-host", hidden: true });
  const refresh = () => {
    if (!table.hidden && model()) table.replaceChildren(mapTable(model(), title()));
  };
  const showTable = button("Table", () => {
    table.hidden = !table.hidden;
    showTable.setAttribute("aria-pressed", String(!table.hidden));
    refresh();
  }, { "aria-pressed": "false", class: "button quiet table-button" });
  const copy = button("Copy CSV", async () => {
    if (!model()) return;
    await copyText(mapCsv(model()));
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy CSV"; }, 1500);
  }, { class: "button quiet" });
  const name = () => title().replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 60);
  const png = button("PNG", () => {
    sheet().toBlob((blob) => download(blob, `${name()}.png`), "image/png");
  }, { class: "button quiet", "aria-label": "Download PNG" });
  return { bar: el("div", { class: "export" }, showTable, copy, png), table, refresh };
}

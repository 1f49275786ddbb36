// What scrolls sideways can be reached by the keyboard; what does not is no stop on the way.
function reach() {
  for (const box of document.querySelectorAll("article pre, .table-wrapper")) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

addEventListener("DOMContentLoaded", reach);
addEventListener("load", reach);
addEventListener("resize", reach);
document.addEventListener("toggle", reach, true);

"""All claims on one page that needs nothing from outside."""

import re
from html import escape
from importlib.resources import files

from saccade.app.figures.charts import draw_finding
from saccade.app.figures.finding import ClaimReport
from saccade.printable import printable

HOLDS = {
    True: ("holds", "holds here"),
    False: ("fails", "does not hold here"),
    None: ("open", "open"),
}


def page_of(reports: list[ClaimReport]) -> str:
    """A section for each, with links to all at the top."""
    parts = {
        "style": _file("style.css"),
        "links": "\n".join(map(_link, reports)),
        "sections": "\n".join(map(_section, reports)),
    }
    return re.sub(r"\{(\w+)\}", lambda place: parts[place[1]], _file("index.html"))


def _link(report: ClaimReport) -> str:
    mark, words = HOLDS[report.finding.holds]
    return (
        f'<li><a href="#{report.name}"><b>{report.key}</b> {_text(report.title)}</a> '
        f'<span class="mark {mark}">{words}{"" if report.budget == 1 else "?"}</span></li>'
    )


def _section(report: ClaimReport) -> str:
    finding = report.finding
    mark, words = HOLDS[finding.holds]
    drawing = draw_finding(finding, title=report.title, headed=False).svg()
    return f"""<section id="{report.name}">
<h2><b>{report.key}</b> {_text(report.title)}</h2>
<p class="claim">{_text(report.claim)}</p>
<p><span class="mark {mark}">{words}{report.share}</span> {_text(finding.verdict)}</p>
<figure>{drawing}
<figcaption>{_text(report.expect)}</figcaption></figure>
<details><summary>The numbers</summary>{_table(report)}</details>
<details><summary>What was run</summary>
<p>saccade figures {report.key}{_budget(report)}; seeds {", ".join(map(str, report.seeds))};
{_text(report.machine)}; {report.seconds:,.0f} seconds, without runs that were trained before.</p>
{_commands(report)}</details>
</section>"""


def _budget(report: ClaimReport) -> str:
    return "" if report.budget == 1 else f" --budget {report.budget:g}"


def _table(report: ClaimReport) -> str:
    head = "".join(f'<th scope="col">{_text(name)}</th>' for name in report.finding.head)
    rows = "\n".join(
        "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in row) + "</tr>"
        for row in report.finding.rows
    )
    inside = f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="wide"><table>{inside}</table></div>'


def _commands(report: ClaimReport) -> str:
    return "<pre>" + "\n".join(map(_text, report.ran)) + "</pre>" if report.ran else ""


def _text(text: str) -> str:
    return escape(printable(text))


def _file(name: str) -> str:
    return (files("saccade.app.figures") / "page" / name).read_text(encoding="utf-8")

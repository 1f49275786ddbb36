"""How Sphinx makes a site of this folder: `make docs`."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parent.parent)]

import saccade  # noqa: E402

project = "Saccade"
copyright = "the authors of Saccade"  # noqa: A001
release = saccade.__version__
html_title = "Saccade"

extensions = ["myst_parser", "site_pages"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_ext", "_static"]
myst_heading_anchors = 4
myst_links_external_new_tab = False
highlight_language = "text"
smartquotes = False  # two hyphens are an option
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["saccade.css"]
html_js_files = ["saccade.js"]
html_use_index = False
html_logo = "_static/mark.svg"
html_favicon = "_static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it would be fetched, which a page from a file may not
_MONO = 'ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", Menlo, Consolas, monospace'
_SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
_FONTS = {"font-stack": _SANS, "font-stack--monospace": _MONO}
html_theme_options = {
    "light_css_variables": {
        **_FONTS,
        "color-background-primary": "#fdfcfa",
        "color-background-secondary": "#f7f6f2",
        "color-background-hover": "#efede7",
        "color-background-border": "#e3e1da",
        "color-foreground-primary": "#191c22",
        "color-foreground-secondary": "#545b66",
        "color-foreground-muted": "#5c6470",
        "color-foreground-border": "#8a909a",
        "color-brand-primary": "#b3401a",
        "color-sidebar-link-text": "#545b66",
        "color-sidebar-link-text--top-level": "#333942",
        "color-sidebar-caption-text": "#5c6470",
        "color-brand-content": "#1b5f99",
        "color-brand-visited": "#1b5f99",
        "color-inline-code-background": "#f1f0eb",
        "color-code-background": "#f7f6f2",
        "color-highlight-on-target": "#fbeee7",
    },
    "dark_css_variables": {
        **_FONTS,
        "color-background-primary": "#111317",
        "color-background-secondary": "#15181d",
        "color-background-hover": "#22262d",
        "color-background-border": "#2b3038",
        "color-foreground-primary": "#eceae4",
        "color-foreground-secondary": "#b3bac4",
        "color-foreground-muted": "#9ea6b2",
        "color-foreground-border": "#6b7380",
        "color-brand-primary": "#ff9a6b",
        "color-sidebar-link-text": "#b3bac4",
        "color-sidebar-link-text--top-level": "#d5d8dc",
        "color-sidebar-caption-text": "#9ea6b2",
        "color-brand-content": "#7fbdea",
        "color-brand-visited": "#7fbdea",
        "color-inline-code-background": "#22262d",
        "color-code-background": "#191c21",
        "color-highlight-on-target": "#3a261c",
    },
}

"""The frame of every HTML page for reviewers. No Spark."""

from __future__ import annotations

from html import escape

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
body { font: 14px/1.5 sans-serif; margin: 2em auto; max-width: 70em; color: #222; padding: 0 1em; }
h2 { border-bottom: 1px solid #ccc; margin-top: 1.6em; }
table { border-collapse: collapse; width: 100%; }
td, th { padding: 0.25em 0.6em; text-align: left; vertical-align: top; }
tr:nth-child(even) { background: #f5f5f5; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; }
"""


def page(title: str, body: str, style: str = "") -> str:
    """Frame a page that needs nothing else: no script, no font, no picture from elsewhere.

    Parameters
    ----------
    title
        Plain text; it is escaped.
    body
        HTML whose texts from data are already escaped.
    style
        CSS after that of all pages.

    Returns
    -------
    str
        The page. Its policy forbids scripts and requests, should an escape ever be missing.
    """
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}{style}</style>{body}</html>\n"
    )

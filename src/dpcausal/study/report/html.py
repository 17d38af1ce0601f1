"""A document as one HTML file that loads nothing: two printed A4 pages, and an appendix that opens on screens."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Literal

Kind = Literal[
    "title", "heading", "subheading", "section", "text", "small", "list", "table", "picture", "answer", "page", "quote",
    "output", "appendix",
]  # fmt: skip

LONGEST_UNBROKEN = 16
"""Characters of a cell that stay on one line, as an interval."""
STYLE = """
@page{size:A4;margin:13mm 17mm 15mm;@bottom-left{font:7pt sans-serif;color:#555;content:"FOOTER"}
@bottom-right{font:7pt sans-serif;color:#555;content:counter(page) " / " counter(pages)}}
*{box-sizing:border-box}body{margin:0;background:#fff;color:#1b1b1b;font:16px/1.45 "DejaVu Sans",Arial,sans-serif}
main{max-width:48rem;margin:0 auto;padding:1.5rem 1rem 4rem}h1{font-size:1.7em;line-height:1.2;margin:0 0 .2em}
h2{font-size:1.15em;margin:1.3em 0 .3em;color:#1f4e79;border-bottom:1px solid #bbb;break-after:avoid}
h3{font-size:1em;margin:1em 0 .2em;break-after:avoid}p{margin:.3em 0}.small{color:#444;font-size:.85em}
.answer{border-left:4px solid #1f4e79;background:#f1f5fa;padding:.5em .9em;margin:.5em 0}
.answer p:first-child{font-weight:600}ul{margin:.2em 0;padding-left:1.2em}
.quote,.output{background:#f5f5f5;padding:.4em .7em;white-space:pre-line;overflow-wrap:anywhere}
.output{font:.8em/1.4 "DejaVu Sans Mono",monospace;white-space:pre-wrap;margin:.3em 0}
summary{cursor:pointer;margin-top:1.5em}summary h2{display:inline;border:0}
.rows{overflow-x:auto}table{border-collapse:collapse;width:100%;font-size:.85em}
tr,figure,.answer,.quote,.output{break-inside:avoid}
th,td{border-bottom:1px solid #ccc;padding:.2em .6em .2em 0;text-align:left;vertical-align:top;overflow-wrap:break-word}
.fill{background:#fff3cd}figure{margin:.5em 0}svg{display:block;width:100%;max-width:36rem;height:auto}
.sub svg{max-width:20rem}figcaption{color:#444;font-size:.85em}p,li{overflow-wrap:anywhere}
.two{display:grid;grid-template-columns:1fr 1fr;gap:0 1.5em}.two>*{min-width:0}
@media(max-width:40rem){.two{display:block}figure{overflow-x:auto}svg{min-width:34rem}}
@media print{body{font-size:9.3pt;line-height:1.3}main{max-width:none;padding:0}
.page,details{break-before:page}details:not([open]){display:none}
h2{margin:.8em 0 .25em}svg{max-width:150mm;max-height:48mm}.rows{overflow:visible}}
"""


@dataclass(frozen=True)
class Block:
    """A piece of a document: a text, a list, rows of a table (the first its heads), or a picture with its caption.
    ``right`` is a second block, set to its right where there is room; ``inside`` are those of an appendix."""

    kind: Kind
    text: str = ""
    lines: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    right: tuple[Block, ...] = ()
    inside: tuple[Block, ...] = ()


def html(blocks: list[Block], mark: str = "", footer: str = "") -> str:
    """Return a document as an HTML page. ``mark`` identifies its study to a program, ``footer`` is on each printed
    page."""
    title = next(block.text for block in blocks if block.kind == "title")
    body = "\n".join(_placed_block(block) for block in blocks)
    style = STYLE.replace("FOOTER", "".join(one for one in footer if one not in '\\"<>\n'))
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{escape(mark)}">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _placed_block(block: Block) -> str:
    if not block.right:
        return _html_element(block)
    parts = "".join(f'<div class="sub">{_html_element(one)}</div>' for one in (block, *block.right))
    return f'<div class="two">{parts}</div>'


def _html_element(block: Block) -> str:
    text = escape(block.text)
    tags = {"title": "h1", "heading": "h2", "subheading": "h3", "text": "p"}
    if block.kind in tags:
        return f"<{tags[block.kind]}>{text}</{tags[block.kind]}>"
    if block.kind == "page":
        return '<div class="page"></div>'
    if block.kind == "appendix":
        return f"<details><summary><h2>{text}</h2></summary>{''.join(map(_placed_block, block.inside))}</details>"
    if block.kind == "output":
        return f'<pre class="output">{text}</pre>'
    if block.kind in ("small", "quote"):
        return f'<p class="{block.kind}">{text}</p>'
    if block.kind == "answer":
        return f'<div class="answer"><p>{text}</p>{"".join(f"<p>{escape(line)}</p>" for line in block.lines)}</div>'
    if block.kind == "section":
        return f"<h2>{text}</h2><ul>{''.join(f'<li>{escape(line)}</li>' for line in block.lines)}</ul>"
    if block.kind == "list":
        return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in block.lines)}</ul>"
    if block.kind == "picture":
        return f'<figure tabindex="0">{block.lines[0]}<figcaption>{text}</figcaption></figure>'
    heads, *rows = block.rows
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = "".join(f"<tr>{''.join(map(_table_cell, row))}</tr>" for row in rows)
    return (
        f'<div class="rows" role="region" aria-label="{text}" tabindex="0"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _table_cell(text: str) -> str:
    unbroken = "&nbsp;" if len(text) <= LONGEST_UNBROKEN else " "
    indented = "&nbsp;&nbsp;" * text.startswith("  ") + escape(text.strip()).replace(" ", unbroken)
    return f'<td class="fill">{indented}</td>' if text.startswith("[to be filled in") else f"<td>{indented}</td>"


def markdown(blocks: list[Block]) -> str:
    return "\n\n".join(filter(None, (_markdown_block(one) for block in blocks for one in (block, *block.right)))) + "\n"


def _markdown_block(block: Block) -> str:
    marks = {"title": "# ", "heading": "## ", "subheading": "### ", "text": "", "small": ""}
    if block.kind in marks:
        return marks[block.kind] + _plain_text(block.text)
    if block.kind == "page":
        return ""
    if block.kind == "appendix":
        return f"## {_plain_text(block.text)}\n\n{markdown(list(block.inside)).rstrip()}"
    if block.kind in ("quote", "output"):
        return "\n".join(f"> {_plain_text(line)}  " for line in block.text.split("\n"))
    if block.kind == "answer":
        return "\n".join(f"> {_plain_text(line)}  " for line in (f"**{block.text}**", *block.lines))
    if block.kind == "section":
        return "\n".join([f"## {_plain_text(block.text)}", "", *(f"* {_plain_text(line)}" for line in block.lines)])
    if block.kind == "list":
        return "\n".join(f"* {_plain_text(line)}" for line in block.lines)
    if block.kind == "picture":
        return f"*{_plain_text(block.text)}*"
    heads, *rows = ([_plain_text(one).replace("|", "\\|") for one in row] for row in block.rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows))


def _plain_text(text: str) -> str:
    return text.replace("<", "&lt;").replace("](", "]\\(").replace("\n", " ")

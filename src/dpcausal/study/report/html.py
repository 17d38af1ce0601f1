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


HTML: dict[Kind, str] = {
    "title": "<h1>{text}</h1>", "heading": "<h2>{text}</h2>", "subheading": "<h3>{text}</h3>", "text": "<p>{text}</p>",
    "small": '<p class="small">{text}</p>', "quote": '<p class="quote">{text}</p>',
    "output": '<pre class="output">{text}</pre>', "page": '<div class="page"></div>', "list": "<ul>{items}</ul>",
    "answer": '<div class="answer"><p>{text}</p>{paragraphs}</div>', "section": "<h2>{text}</h2><ul>{items}</ul>",
    "picture": '<figure tabindex="0">{svg}<figcaption>{text}</figcaption></figure>',
    "appendix": "<details><summary><h2>{text}</h2></summary>{inside}</details>",
    "table": '<div class="rows" role="region" aria-label="{text}" tabindex="0"><table>'
             "<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table></div>",
}  # fmt: skip
MARKDOWN: dict[Kind, str] = {
    "title": "# {text}", "heading": "## {text}", "subheading": "### {text}", "text": "{text}", "small": "{text}",
    "quote": "{quoted}", "output": "{quoted}", "answer": "{quoted}", "page": "", "list": "{items}",
    "section": "## {text}\n\n{items}", "picture": "*{text}*", "appendix": "## {text}\n\n{inside}", "table": "{table}",
}  # fmt: skip


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
    lines = [escape(line) for line in block.lines]
    heads, *rows = block.rows or ((),)
    return HTML[block.kind].format(
        text=escape(block.text), paragraphs="".join(f"<p>{line}</p>" for line in lines),
        items="".join(f"<li>{line}</li>" for line in lines), svg="".join(block.lines[:1]),
        inside="".join(map(_placed_block, block.inside)),
        heads="".join(f'<th scope="col">{escape(one)}</th>' for one in heads),
        rows="".join(f"<tr>{''.join(map(_table_cell, row))}</tr>" for row in rows),
    )  # fmt: skip


def _table_cell(text: str) -> str:
    unbroken = "&nbsp;" if len(text) <= LONGEST_UNBROKEN else " "
    indented = "&nbsp;&nbsp;" * text.startswith("  ") + escape(text.strip()).replace(" ", unbroken)
    return f'<td class="fill">{indented}</td>' if text.startswith("[to be filled in") else f"<td>{indented}</td>"


def markdown(blocks: list[Block]) -> str:
    return "\n\n".join(filter(None, (_markdown_block(one) for block in blocks for one in (block, *block.right)))) + "\n"


def _markdown_block(block: Block) -> str:
    lines = [_plain_text(line) for line in block.lines]
    quoted = [f"**{block.text}**", *block.lines] if block.kind == "answer" else block.text.split("\n")
    heads, *rows = ([_plain_text(one).replace("|", "\\|") for one in row] for row in block.rows or ((),))
    return MARKDOWN[block.kind].format(
        text=_plain_text(block.text), items="\n".join(f"* {line}" for line in lines),
        quoted="\n".join(f"> {_plain_text(line)}  " for line in quoted), inside=markdown(list(block.inside)).rstrip(),
        table="\n".join(f"| {' | '.join(row)} |" for row in (heads, ["---"] * len(heads), *rows)),
    )  # fmt: skip


def _plain_text(text: str) -> str:
    return text.replace("<", "&lt;").replace("](", "]\\(").replace("\n", " ")

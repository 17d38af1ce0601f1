"""A document as one HTML file: nothing is loaded, light and dark, for screens, printers and screen readers."""

from __future__ import annotations

from html import escape
from itertools import pairwise

from dpcausal.study.report.content import Block

STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--faint:#5b6470;--line:#c9ced6;--one:#1f5fa8;--two:#a8431f;
--zone:#e4e9f1}
@media(prefers-color-scheme:dark){:root{--ink:#e6e9ee;--paper:#14171b;--faint:#a4adb9;--line:#4a525d;--one:#7fb2ec;
--two:#f0a184;--zone:#262c35}}
*{box-sizing:border-box}body{margin:0;background:var(--paper);color:var(--ink);font:16px/1.55 system-ui,sans-serif}
main{max-width:46rem;margin:0 auto;padding:1.5rem 1rem 4rem}h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0 1rem}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;border-bottom:1px solid var(--line);padding-bottom:.2rem}
h3{font-size:1.05rem;margin:1.6rem 0 .3rem}p{margin:.5rem 0}ul{padding-left:1.2rem;margin:.5rem 0}
.answer{border-left:4px solid var(--one);padding:.3rem .8rem;margin:.6rem 0}.answer p{margin:.2rem 0}
.answer p:first-child{font-weight:600}.rows{overflow-x:auto}table{border-collapse:collapse;font-size:.9rem;width:100%}
caption{text-align:left;color:var(--faint);padding:.3rem 0}th,td{text-align:left;padding:.3rem .7rem .3rem 0;
border-bottom:1px solid var(--line);vertical-align:top;overflow-wrap:break-word}p,li{overflow-wrap:anywhere}
figure{margin:.8rem 0}svg{display:block;width:100%;max-width:28rem;height:auto;
font-size:13px;fill:var(--ink)}figcaption{color:var(--faint);
font-size:.9rem}svg line,svg polyline{fill:none;stroke:var(--faint);stroke-width:1.5}svg .zero{stroke:var(--two);
stroke-dasharray:4 3}svg .reach{stroke:var(--one);stroke-width:4}svg .noise{stroke:var(--two);stroke-width:4}
svg .one{fill:var(--one)}svg .node{fill:var(--one)}svg .tip{fill:var(--faint)}svg .zone{fill:var(--zone)}
svg .frame{fill:none;stroke:var(--line)}svg .observed{stroke:var(--ink);stroke-width:2}svg .without{stroke:var(--one);
stroke-width:2;stroke-dasharray:7 4}svg .own{stroke:var(--faint);stroke-dasharray:2 4}
@media print{body{background:#fff;color:#000;font-size:11pt}figure,.answer,tr{break-inside:avoid}}
"""


def html(blocks: list[Block], mark: str = "") -> str:
    """Return a document as an HTML page; ``mark`` tells a program whose it is."""
    title = next(block.text for block in blocks if block.kind == "title")
    body = "\n".join(_set(block) for block in blocks)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="{escape(mark)}">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n"
        "</body>\n</html>\n"
    )


def _set(block: Block) -> str:
    text = escape(block.text)
    tags = {"title": "h1", "heading": "h2", "subheading": "h3", "text": "p"}
    if block.kind in tags:
        return f"<{tags[block.kind]}>{text}</{tags[block.kind]}>"
    if block.kind == "answer":
        return f'<div class="answer"><p>{text}</p>{"".join(f"<p>{escape(line)}</p>" for line in block.lines)}</div>'
    if block.kind == "list":
        return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in block.lines)}</ul>"
    if block.kind == "picture":
        return f"<figure>{block.lines[0]}<figcaption>{text}</figcaption></figure>"
    heads, *rows = block.rows
    head = "".join(f'<th scope="col">{escape(one)}</th>' for one in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(one)}</td>' for one in row)}</tr>" for row in rows)
    return (
        f'<div class="rows" role="region" aria-label="{text}" tabindex="0"><table>'
        f"<caption>{text}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
        "</table></div>"
    )


def markdown(blocks: list[Block]) -> str:
    """Return a document as Markdown; a picture is its words."""
    parts = []
    for block in blocks:
        marks = {"title": "# ", "heading": "## ", "subheading": "### ", "text": ""}
        if block.kind in marks:
            parts.append(marks[block.kind] + _plain(block.text))
        elif block.kind == "answer":
            parts.append("\n".join(f"> {_plain(line)}  " for line in (f"**{block.text}**", *block.lines)))
        elif block.kind == "list":
            parts.append("\n".join(f"* {_plain(line)}" for line in block.lines))
        elif block.kind == "picture":
            parts.append(f"*Picture: {_plain(block.text)}.*")
        else:
            heads, *rows = ([_plain(one).replace("|", "\\|") for one in row] for row in block.rows)
            told = [heads, ["---"] * len(heads), *rows]
            parts.append("\n".join([f"{block.text}:", "", *(f"| {' | '.join(row)} |" for row in told)]))
    return "\n\n".join(parts) + "\n"


def _plain(text: str) -> str:
    return text.replace("<", "&lt;").replace("](", "]\\(").replace("\n", " ")


def levels_in_order(blocks: list[Block]) -> bool:
    """Return whether no heading skips a level."""
    depth = {"title": 1, "heading": 2, "subheading": 3}
    found = [depth[block.kind] for block in blocks if block.kind in depth]
    return found[:1] == [1] and all(after <= before + 1 for before, after in pairwise(found))

"""The site as Sphinx sees it: pages that ``docs/site/build.py`` has laid out, with what their blocks print."""

import dpcausal

project = "dpcausal"
author = "The dpcausal authors"
copyright = author
version = release = dpcausal.__version__

extensions = [
    "myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "sphinx_design", "sphinx_copybutton",
]  # fmt: skip
templates_path = ["_templates"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
root_doc = "index"

myst_heading_anchors = 6
myst_enable_extensions = ["attrs_inline", "colon_fence"]
# Errata are headings of the third level on every forge, right below the page's title.
suppress_warnings = ["myst.header"]
numpydoc_show_class_members = False
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autosummary_generate = True
autosummary_imported_members = True
copybutton_exclude = ".linenos, .printed"
autodoc_member_order = "bysource"
add_module_names = False

html_theme = "pydata_sphinx_theme"
html_title = "dpcausal"
html_show_sourcelink = False
html_use_index = True
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

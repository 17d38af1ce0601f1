"""What accuracy to expect of a question, and what n or loss an accuracy takes: from public numbers alone."""

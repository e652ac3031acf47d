"""Pages, plots, and the paper's figures beside ours."""

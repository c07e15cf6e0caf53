"""Modules whose extras are not installed are not collected."""

import importlib.util

collect_ignore = []
if importlib.util.find_spec("torch") is None:
    collect_ignore += ["circulant/torch.py", "circulant/_torch_ops.py"]

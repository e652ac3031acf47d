"""What models read in their memories: probes, and exported models."""

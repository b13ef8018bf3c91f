"""Adapters of upscalers: any picture in, the same picture with more pixels out."""

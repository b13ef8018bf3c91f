"""Jobs for render farms."""

"""Speed and steadiness as figures: ratios measured in one run, on frames that it makes."""

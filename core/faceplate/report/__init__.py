"""The page that tells what a job did."""

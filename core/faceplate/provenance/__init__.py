"""What an output says about itself: who, from what, by whose consent."""

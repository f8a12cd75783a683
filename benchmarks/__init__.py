"""Speed and memory against public peers, in one run (`make bench`)."""

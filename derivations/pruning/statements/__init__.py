"""The equations of motion of system `pruning`, stated in index notation, one file for each kind of slope."""

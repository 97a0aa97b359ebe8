"""What people made elsewhere, read as data: checkpoints of other libraries, their data sets."""

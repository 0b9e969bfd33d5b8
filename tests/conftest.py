"""What holds for every test."""

from hypothesis import settings

# An example may take long because the machine is busy: no absolute time is asserted anywhere.
settings.register_profile("steady", deadline=None)
settings.load_profile("steady")

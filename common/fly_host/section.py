"""Where an image keeps the text of its host program (`fly_host.text`)."""

SECTION = ".fly.manifest"

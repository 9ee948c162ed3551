"""The dialect `fly_rocdl`: what only AMD's hardware has."""

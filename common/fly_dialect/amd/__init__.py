"""The dialect `fly_rocdl`, for features specific to AMD hardware."""

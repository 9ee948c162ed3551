"""What `fly_host.library` is made of: functions, shape rules, arrays of several libraries."""

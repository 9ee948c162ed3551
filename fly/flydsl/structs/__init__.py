"""FlyDSL's structs and unions: declarations, values, arrays, layouts in memory."""

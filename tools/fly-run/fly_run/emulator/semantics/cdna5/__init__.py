"""Operations that only gfx1250 has."""

"""Operations that gfx11 and gfx12 have and gfx9 does not."""

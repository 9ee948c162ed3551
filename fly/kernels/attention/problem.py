"""What a workgroup of attention works on: a tile of a sequence, and which keys its queries see.

Sequences are the batches of one tensor, of the same length, or lie one after the other in a tensor
with one batch, between rows starts[i] and starts[i + 1].

A query sees the keys of its sequence; in causal attention those up to its own position, where the
last query is at the position of the last key.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import fly.expr as fx

# The annotations of Q, K and V (batches × heads × length × d), and of the starts of sequences.
Queries = fx.Tensor[fx.Float, "batches", fx.sym_int32("heads"), fx.sym_int32("queries"), "d"]
Keys = fx.Tensor[fx.Float, "batches", fx.sym_int32("kv_heads"), fx.sym_int32("keys"), "d"]
Numbers = fx.Tensor[fx.Float32, "batches", fx.sym_int32("heads"), fx.sym_int32("queries")]
Starts = fx.Tensor[fx.Int32, "starts"]


class Problem(NamedTuple):
    """d, and whether attention is causal and sequences are packed."""

    d: int
    causal: bool
    packed: bool

    def part(
        self, own: int, Q: Any, K: Any, starts_q: Any, starts_k: Any, *, of_keys: bool = False
    ) -> Part:
        """The block's part: a tile of so many queries or, `of_keys`, keys."""
        tile, sequence = fx.block_idx.x, fx.block_idx.z
        return self.part_of(tile, sequence, own, Q, K, starts_q, starts_k, of_keys=of_keys)

    def part_of(
        self,
        tile: Any,
        sequence: Any,
        own: int,
        Q: Any,
        K: Any,
        starts_q: Any,
        starts_k: Any,
        *,
        of_keys: bool = False,
    ) -> Part:
        """A tile of a sequence; if sequences are packed, a tile by its number among those of all
        sequences."""
        if not self.packed:
            return Part(self, tile, True, sequence, sequence, 0, Q.shape[2], 0, K.shape[2])
        starts = starts_k if of_keys else starts_q
        sequence, count = fx.Int32(0), starts.shape[0] - 1
        while sequence < count and tile >= _tiles(starts, sequence, own):
            tile -= _tiles(starts, sequence, own)
            sequence += 1
        exists = sequence < count
        sequence = sequence if exists else 0
        first_q, first_k = starts_q[sequence], starts_k[sequence]
        length_q, length_k = starts_q[sequence + 1] - first_q, starts_k[sequence + 1] - first_k
        return Part(self, tile, exists, sequence, 0, first_q, length_q, first_k, length_k)

    def count(self, own: int, starts: Any) -> Any:
        """The tiles of so many rows of packed sequences."""
        total = fx.Int32(0)
        for sequence in range(starts.shape[0] - 1):
            total += _tiles(starts, sequence, own)
        return total

    def heads(self, Q: Any, K: Any) -> tuple[Any, Any]:
        """The block's head of queries, and that of keys."""
        head = fx.block_idx.y
        return head, shared_head(head, Q.shape[1], K.shape[1])


def shared_head(head: Any, heads: Any, kv_heads: Any) -> Any:
    """The head of keys that a head of queries shares, where both are counted in 32 bits. A grid has
    less than 2^16 heads, so their product has 32 bits; a signed division takes two times the
    instructions, and one of 64 bits ten times."""
    return fx.Int32(fx.Uint32(head) * fx.Uint32(kv_heads) // fx.Uint32(heads))


def _tiles(starts: Any, sequence: Any, own: int) -> Any:
    """The tiles of a sequence."""
    return fx.ceildiv(starts[sequence + 1] - starts[sequence], own)


def empty_like(heads: Any) -> Any:
    """In a host function, a tensor of the shape of batches × heads × length × d, in memory as
    batches × length × heads × d: the heads of a position can then be seen as one row."""
    return fx.empty(heads.shape, heads.dtype, fx.Allocation().reorder(0, 2, 1, 3))


def tiles(own: int, length: Any, starts: Any, packed: bool) -> Any:
    """In a host function, a bound of the number of tiles of so many rows of a tensor."""
    return fx.ceildiv(length, own) + (starts.shape[0] - 1 if packed else 0)


class Part(NamedTuple):
    """A tile of a sequence, by its number. exists: whether there is such a tile; batch: the
    sequence's in the tensors; first_q, length_q, first_k, length_k: the sequence's rows there."""

    problem: Problem
    tile: Any
    exists: Any
    sequence: Any
    batch: Any
    first_q: Any
    length_q: Any
    first_k: Any
    length_k: Any

    def queries(self, tensor: Any, head: Any) -> Any:
        """The sequence's queries of a head: a matrix."""
        return self._rows(tensor, head, self.first_q, self.length_q)

    def keys(self, tensor: Any, head: Any) -> Any:
        """The sequence's keys of a head: a matrix."""
        return self._rows(tensor, head, self.first_k, self.length_k)

    def _rows(self, tensor: Any, head: Any, first: Any, length: Any) -> Any:
        # Without a sign, which takes two instructions less in each product with a stride.
        step, first = tensor.stride[2], fx.Uint32(first) if self.problem.packed else first
        start = self._start(tensor, head) + first * step
        return fx.make_view(start, fx.make_layout((length, self.problem.d), (step, 1)))

    def numbers(self, tensor: Any, head: Any) -> Any:
        """The numbers of the sequence's queries in batches × heads × length: a vector."""
        start = self._start(tensor, head) + self.first_q
        return fx.make_view(start, fx.make_layout(self.length_q, 1))

    def _start(self, tensor: Any, head: Any) -> Any:
        """A pointer to the first row of a head of the batch."""
        batch, head = fx.Uint32(self.batch), fx.Uint32(head)
        if self.problem.packed or not tensor.is_contiguous:
            return fx.get_iter(tensor[(batch, head, *[None] * (tensor.rank - 2))])
        # The rows of all heads before: without the strides, two arguments of 64 bits each. Not by
        # the part's length, which is K's and V's: LLVM would keep their common distance.
        heads, length = (fx.Uint32(extent) for extent in tensor.shape[1:3])
        before = fx.Uint64(batch * heads + head) * fx.Uint64(length)
        return fx.get_iter(tensor) + before * (self.problem.d if tensor.rank == 4 else 1)

    def tiles_before(self, own: int) -> Any:
        """A bound of the tiles of so many queries of all sequences before: such tiles of all
        sequences, as `tiles` counts them, can be numbered from it."""
        if self.problem.packed:
            return self.first_q // own + self.sequence
        return self.sequence * fx.ceildiv(self.length_q, own)

    def keys_end(self, query: Any) -> Any:
        """The end of the keys that queries before `query` see."""
        if not self.problem.causal:
            return self.length_k
        return fx.max(0, fx.min(self.length_k, query + self.length_k - self.length_q))

    def unseen(self, query: Any) -> Any:
        """How many of the last keys queries before `query` do not see; less than 0 where the last
        query comes before it, and more than all where they see none."""
        return self.length_q - query if self.problem.causal else 0

    def queries_start(self, key: Any) -> Any:
        """The first of the queries that see keys from `key` on."""
        if not self.problem.causal:
            return 0
        return fx.max(0, key + self.length_q - self.length_k)

    def all_see(self, query: Any, queries: int, key: Any, keys: int) -> Any:
        """Whether so many queries and keys, from `query` and `key` on, exist and all see all."""
        exist = (query + queries <= self.length_q) & (key + keys <= self.length_k)
        if not self.problem.causal:
            return exist
        return exist & (key + keys - 1 <= query + (self.length_k - self.length_q))

    def sees(self, query: Any, key: Any) -> Any:
        """Whether a query sees a key, and both exist."""
        return self.all_see(query, 1, key, 1)

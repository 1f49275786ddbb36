"""The assignment of least cost on a GPU, a program for each problem: nothing waits for a CPU.

Objects are added one at a time, each along the shortest path that makes room for it (Jonker and
Volgenant 1987, doi:10.1007/BF02278710). Prices v of the queries keep all reduced costs

    c(i, j) − u(i) − v(j) ≥ 0,        with equality where i has j, so u(i) need not be kept.
"""
# Triton's language is not Python's: its functions have no types that a checker could follow.
# pyright: basic, reportArgumentType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# ruff: noqa: ANN001, ANN202

import torch
import triton
import triton.language as tl
from jaxtyping import Bool, Float, Int
from torch import Tensor

NEVER = tl.constexpr(1.0e30)  # farther than any path


def assigned_on_gpu(
    cost: Float[Tensor, "*problems N Q"], there: Bool[Tensor, "*problems N"]
) -> Int[Tensor, "*problems N"]:
    """The query of each object that is there, −1 of others; no more objects than queries, and
    every cost is a number.
    """
    N, Q = cost.shape[-2:]
    found = torch.full(there.shape, -1, dtype=torch.long, device=cost.device)
    costs = cost.float().contiguous()
    real, size = there.to(torch.int8).contiguous(), triton.next_power_of_2(Q)
    _assign[(there[..., 0].numel(),)](
        costs, real, found, N, Q, SIZE=size, num_warps=max(1, min(4, size // 64))
    )
    return found


@triton.jit
def _at(x, index, place):
    """One number of a vector."""
    return tl.sum(tl.where(index == place, x, 0), axis=0)


@triton.jit
def _assign(cost_at, there_at, found_at, N, Q, SIZE: tl.constexpr):
    problem = tl.program_id(0).to(tl.int64)
    cost_at += problem * N * Q
    query = tl.arange(0, SIZE)
    price = tl.zeros((SIZE,), tl.float32)
    owner = tl.full((SIZE,), -1, tl.int32)  # the object that has each query
    for newest in range(N):
        shortest = tl.full((SIZE,), NEVER, tl.float32)
        before = tl.full((SIZE,), -1, tl.int32)  # the query that a path to each comes from
        reached = query >= Q  # those beyond the last are never looked at
        row, came_from, length, own = newest, -1, 0.0, 0.0
        searching = tl.load(there_at + problem * N + newest) > 0
        end = -1
        while searching:
            costs = tl.load(cost_at + row * Q + query, mask=query < Q, other=NEVER)
            path = length + costs - own - price
            nearer = (path < shortest) & (reached == 0)
            shortest = tl.where(nearer, path, shortest)
            before = tl.where(nearer, came_from, before)
            open_ = tl.where(reached, NEVER, shortest)
            length = tl.min(open_, axis=0)
            end = tl.argmin(open_, axis=0)
            reached = reached | (query == end)
            holder = _at(owner, query, end)
            searching = holder >= 0
            if searching:
                row, came_from = holder, end
                own = tl.load(cost_at + holder * Q + end) - _at(price, query, end)
        price = tl.where(reached & (query < Q) & (end >= 0), price - (length - shortest), price)
        while end >= 0:
            previous = _at(before, query, end)
            taken = tl.where(previous < 0, newest, _at(owner, query, previous))
            owner = tl.where(query == end, taken, owner)
            end = previous
    tl.store(found_at + problem * N + owner, query.to(tl.int64), mask=owner >= 0)

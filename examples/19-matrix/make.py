"""Writes membrane.mtx and loads.mtx: a square membrane that is held at its rim, and two loads."""

N = 20  # points a side, without those of the rim
H = 1 / (N + 1)


def number(i, j):
    return 1 + i + N * j


entries = []
for j in range(N):
    for i in range(N):
        entries.append((number(i, j), number(i, j), 4 / H**2))
        if i > 0:
            entries.append((number(i, j), number(i - 1, j), -1 / H**2))
        if j > 0:
            entries.append((number(i, j), number(i, j - 1), -1 / H**2))

with open("membrane.mtx", "w") as out:
    out.write("%%MatrixMarket matrix coordinate real symmetric\n")
    out.write(f"{N * N} {N * N} {len(entries)}\n")
    for row, column, value in entries:
        out.write(f"{row} {column} {value:.12g}\n")

even = [1] * (N * N)
left = [1 if i < N // 2 else 0 for _ in range(N) for i in range(N)]
with open("loads.mtx", "w") as out:
    out.write(f"%%MatrixMarket matrix array real general\n{N * N} 2\n")
    for value in even + left:
        out.write(f"{value}\n")

"""A decoder written from sz/FORMAT.md alone, slow and plain, to check the library against."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

LANES, CONTEXTS, ONE, START = 32, 30, 1024, 1 << 15
KEEP_SIGN, DITHER, CHECKSUMS, EXPECTATIONS, FACTOR, PAIRS = 1, 2, 4, 8, 16, 32
RAW, LOSSLESS, QUANTISED = 0, 1, 2
ESCAPE, LAST_SYMBOL = 63, 54
CLASSES, OUTSIDE, LEVELS, PAIR_ESCAPE = 16, 15, 6, 255


class Bytes:
    """Input read from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count : self.at]

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.at)

    def unpack(self, form: str) -> tuple:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))

    def one(self, form: str) -> int:
        (value,) = self.unpack(form)
        return value


class Bits:
    """Bits of `source` from the lowest of each byte on."""

    def __init__(self, source: Bytes) -> None:
        self.source, self.value, self.left = source, 0, 0

    def take(self, count: int) -> int:
        while self.left < count:
            self.value |= self.source.take(1)[0] << self.left
            self.left += 8
        value = self.value & ((1 << count) - 1)
        self.value >>= count
        self.left -= count
        return value


class Header(NamedTuple):
    flags: int
    dtype: np.dtype
    step: np.floating
    negative_step: np.floating
    seed: int
    row: int
    rows: int
    neighbourhood: int
    shape: tuple[int, ...]
    count: int

    @property
    def most_steps(self) -> int:
        """M: no lane is longer."""
        return 2048 if self.count < 1 << 22 else 4096

    @property
    def full_steps(self) -> int:
        """S: the length of a full chunk's lanes."""
        if self.neighbourhood < 2:
            return self.most_steps
        unit = self.row * (self.rows or 1)
        return self.most_steps // unit * unit

    def lane_steps(self, n: int) -> int:
        """T: the length of the lanes of a chunk of n values."""
        steps = -(-n // LANES)
        if self.neighbourhood == 2:
            steps = -(-steps // self.row) * self.row
        return min(steps, self.full_steps)


def read_header(source: Bytes) -> Header:
    assert source.take(4) == b"COSZ"
    version, flags, kind, axes = source.take(4)
    assert version == 3 and flags < 64 and kind < 2 and axes <= 32
    _bound, step = source.unpack("dd")
    seed, row, rows, neighbourhood = source.unpack("IIII")
    shape = source.unpack(f"{axes}Q")
    (factor,) = source.unpack("d") if flags & FACTOR else (1.0,)
    assert not flags & PAIRS or flags & EXPECTATIONS
    assert not flags & FACTOR or (flags & KEEP_SIGN and 1 < factor <= 1024)
    dtype = np.dtype([np.float32, np.float64][kind])
    count = int(np.prod(shape, dtype=np.int64))
    steps = (dtype.type(step), dtype.type(step * factor))
    header = Header(flags, dtype, *steps, seed, row, rows, neighbourhood, shape, count)
    assert header.step == step and np.isfinite(header.negative_step)
    assert row == 0 or (2 <= row <= header.most_steps and row < count)
    assert rows == 0 or (rows >= 2 and 0 < row * rows <= header.most_steps)
    assert neighbourhood < 2 or (neighbourhood == 2 and row > 0)
    return header


Slots = list[tuple[int, int, int]]  # (symbol, frequency, slot - start), lowest slot first


class Expectations(NamedTuple):
    """What the coder expects: the slots of each context and, for pairs, what their classes are."""

    slots: list[Slots]
    least: int = 0  # code of class 0
    levels: tuple[int, ...] = ()  # of classes


def read_length(bits: Bits, before: int) -> int:
    """Return a number of binary digits, written as its change from another."""
    ones = 0
    while bits.take(1):
        ones += 1
    length = before + ((ones + 1) // 2 if ones % 2 else -(ones // 2))
    assert 0 <= length <= 10
    return length


def read_description(bits: Bits, last: int) -> list[int]:
    """Return the frequency of each symbol."""
    frequencies = []
    length = 0
    for _ in range(last + 1):
        length = read_length(bits, length)
        frequencies.append(1 << (length - 1) | bits.take(length - 1) if length else 0)
    assert sum(frequencies) < ONE
    frequencies += [0] * (ESCAPE - len(frequencies)) + [ONE - sum(frequencies)]
    return frequencies


def read_frequencies(source: Bytes) -> list[list[int]]:
    last = source.one("B")
    assert last <= LAST_SYMBOL
    bits = Bits(source)
    shared = read_description(bits, last) if bits.take(1) else None
    return [
        read_description(bits, last) if shared is None or bits.take(1) else shared
        for _ in range(CONTEXTS)
    ]


def slots_of(frequencies: list[int]) -> Slots:
    return [
        (symbol, frequency, i)
        for symbol, frequency in enumerate(frequencies)
        for i in range(frequency)
    ]


def read_weights(bits: Bits, last: int, like: list[int]) -> list[int]:
    """Return the weights of 16 classes; lengths change from those of other weights."""
    weights = [0] * CLASSES
    for i in range(last + 1):
        length = read_length(bits, like[i].bit_length())
        if length:
            digits = min(length - 1, 3)
            weights[i] = (1 << digits | bits.take(digits)) << (length - 1 - digits)
    return weights


def read_table(bits: Bits, rows: int, last: int) -> list[list[list[int]]]:
    """Return weights[row][level of the neighbour]; each is described by the one before."""
    table: list[list[list[int]]] = []
    for row in range(rows):
        like = table[row - 1][0] if row else [0] * CLASSES
        table.append([])
        for _ in range(LEVELS):
            like = read_weights(bits, last, like)
            table[row].append(like)
    return table


def probabilities(weights: list[int]) -> list[int]:
    """In 2^-15."""
    return [(weight << 15) // (1 + sum(weights)) for weight in weights[:OUTSIDE]]


def pair_frequencies(first: list[int], seconds: list[list[int]]) -> list[int]:
    """Return frequencies of a context: weights of a first class, of the second one after each."""
    product = [0] * 256
    for i, x in enumerate(probabilities(first)):
        for k, y in enumerate(probabilities(seconds[i])):
            p = x * y >> 10
            product[i + 16 * k] = p if p >= 128 else 0
    if not any(product):
        product[0] = 512
    n = sum(p > 0 for p in product)
    excess = [max(p - ONE, 0) for p in product]
    escape = min(max((2**20 - sum(product) + 512) // ONE, 1), ONE - n)
    rest = ONE - escape - n
    frequencies, seen, total = [], 0, sum(excess)
    for p, more in zip(product, excess):
        after = seen + more
        share = rest * after // total - rest * seen // total if more else 0
        frequencies.append(1 + share if p else 0)
        seen = after
    frequencies[PAIR_ESCAPE] = ONE - sum(frequencies)
    return frequencies


def read_pairs(source: Bytes) -> Expectations:
    least = source.one("b")
    assert -127 <= least <= 112
    bits = Bits(source)
    cuts = [bits.take(4) for _ in range(5)]
    last = bits.take(4)
    assert last <= 14
    first = read_table(bits, LEVELS, last)
    second = read_table(bits, last + 1, last)
    second += [[[0] * CLASSES] * LEVELS] * (CLASSES - last - 1)
    slots = [
        slots_of(pair_frequencies(first[a][b], [row[b] for row in second]))
        for a in range(LEVELS)
        for b in range(LEVELS)
    ]
    levels = tuple(sum(cut <= c for cut in cuts) for c in range(CLASSES))
    return Expectations(slots, least, levels)


def read_expectations(source: Bytes, header: Header) -> Expectations:
    if not header.flags & EXPECTATIONS:
        return Expectations([])
    if header.flags & PAIRS:
        return read_pairs(source)
    return Expectations([slots_of(frequencies) for frequencies in read_frequencies(source)])


def checksum(chunk: bytes) -> int:
    h = len(chunk)
    padded = chunk + bytes(8 - len(chunk) % 8)
    for word in struct.unpack(f"<{len(padded) // 8}Q", padded):
        h = (h ^ word) * 0x9E3779B97F4A7C15 % 2**64
        h ^= h >> 32
    return h % 2**32


def unfold(u: int) -> int:
    return u // 2 if u % 2 == 0 else -(u + 1) // 2


def median(a: int, b: int, c: int) -> int:
    return sorted((a, b, c))[1]


def code_of(symbol: int, p: int, raw: Bits) -> int:
    if symbol == 0:
        return 0
    if symbol <= 32:
        folded = symbol - 1
    elif symbol < ESCAPE:
        b = 4 + (symbol - 33) // 2
        folded = (2 + (symbol - 33) % 2) << b | raw.take(b)
    else:
        escaped = raw.take(16)
        if escaped == 0:
            return 0
        folded = escaped - 1
    return (p + unfold(folded) + 2**15) % 2**16 - 2**15


def order_of_coding(n: int, steps: int) -> Iterator[tuple[int, int]]:
    """Yield (step, index in the chunk) as the codes follow each other."""
    for step in range(steps):
        for lane in range(LANES):
            if lane * steps + step < n:
                yield step, lane * steps + step


def neighbours(header: Header, codes: list[int], steps: int, step: int, i: int) -> tuple:
    """Return L, U, C and D of value i of a chunk, at this step of its lane."""
    if header.neighbourhood == 0:
        return 0, 0, 0, 0
    if header.neighbourhood == 1:
        return (codes[i - 1] if step > 0 else 0), 0, 0, 0
    row, column = divmod(step, header.row)
    planes = header.rows > 0 and steps % (header.row * header.rows) == 0
    if row == 0 or (planes and row % header.rows == 0):
        return (codes[i - 1] if column > 0 else 0), 0, 0, 0
    up = i - header.row
    left = codes[i - 1] if column > 0 else codes[up]
    corner = codes[up - 1] if column > 0 else codes[up]
    return left, codes[up], corner, codes[up + 1 if column + 1 < header.row else up]


class Coder:
    """The states of the lanes, and words and raw bits that are left of a chunk."""

    def __init__(self, source: Bytes) -> None:
        skip, w = source.unpack("BI")
        assert skip < 8
        self.states = list(source.unpack(f"{LANES}I"))
        self.words = iter(source.unpack(f"{w}H"))
        self.bytes = Bytes(source.rest())
        self.raw = Bits(self.bytes)
        self.raw.take(skip)

    def symbol(self, lane: int, slots: Slots) -> int:
        x = self.states[lane]
        symbol, frequency, offset = slots[x % ONE]
        x = frequency * (x // ONE) + offset
        self.states[lane] = x if x >= START else x << 16 | next(self.words)
        return symbol

    def check_end(self) -> None:
        assert next(self.words, None) is None
        assert self.states == [START] * LANES
        assert self.raw.left == 0 and self.bytes.at == len(self.bytes.data)


def read_codes(source: Bytes, header: Header, expected: Expectations, n: int) -> list[int]:
    coder = Coder(source)
    read = read_in_pairs if header.flags & PAIRS else read_one_by_one
    codes = read(coder, header, expected, n)
    coder.check_end()
    return codes


def read_one_by_one(coder: Coder, header: Header, expected: Expectations, n: int) -> list[int]:
    steps = header.lane_steps(n)
    codes = [0] * n
    for step, i in order_of_coding(n, steps):
        left, up, corner, right = neighbours(header, codes, steps, step, i)
        p = median(left, up, left + up - corner)
        a = abs(left - corner) + abs(corner - up) + abs(up - right)
        context = 5 * sum(limit <= a for limit in (1, 2, 4, 9, 24)) + min(max(p, -2), 2) + 2
        symbol = coder.symbol(i // steps, expected.slots[context])
        codes[i] = code_of(symbol, p, coder.raw)
    return codes


def read_in_pairs(coder: Coder, header: Header, expected: Expectations, n: int) -> list[int]:
    assert all(state < 2**31 for state in coder.states)
    steps, codes = header.lane_steps(n), [0] * n
    d = header.row if header.neighbourhood == 2 else 3
    plane = header.row * header.rows if header.neighbourhood == 2 else 0
    if plane == 0 or steps % plane:
        plane = steps

    def class_at(lane: int, step: int) -> int:
        if step < 0:
            return 0
        above = codes[lane * steps + step] - expected.least
        return above if 0 <= above < OUTSIDE else OUTSIDE

    for step, i in order_of_coding(n, steps):
        if step % 2:
            continue
        lane = i // steps
        left = right = p = class_at(lane, step - 1)
        if step % plane >= d:
            up, corner, right = (class_at(lane, step - d + k) for k in (0, -1, 1))
            p = median(left, up, left + up - corner)
        context = LEVELS * expected.levels[p] + expected.levels[right]
        symbol = coder.symbol(lane, expected.slots[context])
        pair = read_escape(coder.raw, expected.least) if symbol == PAIR_ESCAPE else (
            expected.least + symbol % 16, expected.least + symbol // 16)  # fmt: skip
        codes[i] = pair[0]
        if step + 1 < steps and i + 1 < n:
            codes[i + 1] = pair[1]
        else:
            assert pair[1] == 0
    return codes


def read_escape(raw: Bits, least: int) -> tuple[int, ...]:
    classes = [raw.take(4), raw.take(4)]
    return tuple(
        (raw.take(16) + 2**15) % 2**16 - 2**15 if c == OUTSIDE else least + c for c in classes
    )


def dither_of(pair: int, t: int, seed: int) -> float:
    h = (pair * 0x9E3779B1 + seed) % 2**32
    h = (h ^ h >> 16) * 0x7FEB352D % 2**32
    h = (h ^ h >> 15) * 0x846CA68B % 2**32
    h ^= h >> 16
    return ((h >> 16 if t % 2 else h & 0xFFFF) + 0.5) / 2**16


def value_of(header: Header, code: int, d: float) -> np.floating:
    real = header.dtype.type
    if code == 0:
        return real(0)
    sign, magnitude, half = real(1 if code > 0 else -1), real(abs(code)), real(0.5)
    step = header.step if code > 0 else header.negative_step
    dithered = header.flags & DITHER and not (header.flags & FACTOR and code < 0)
    if not header.flags & KEEP_SIGN:
        if not dithered:
            return real(code) * step
        return sign * ((magnitude - half) * step) - real(d) * step
    if not dithered:
        return sign * ((magnitude - half) * step)
    if magnitude == 1:
        return sign * np.finfo(real).tiny
    return sign * ((magnitude - real(1)) * step - real(d) * step)


def decode_quantised(
    source: Bytes, header: Header, expected: Expectations, first: int, n: int
) -> np.ndarray:
    e = source.one("I")
    positions = list(source.unpack(f"{e}I"))
    exact = np.frombuffer(source.take(e * header.dtype.itemsize), header.dtype)
    codes = read_codes(source, header, expected, n)
    steps = header.lane_steps(n)
    values = np.empty(n, header.dtype)
    for i, code in enumerate(codes):
        lane, t = divmod(i, steps)
        d = dither_of(first + lane * steps + t // 2, t, header.seed)
        values[i] = value_of(header, code, d)
    values[positions] = exact
    return values


def decode_lossless(source: Bytes, header: Header, expected: Expectations, n: int) -> np.ndarray:
    double = header.dtype == np.float64
    whole, mantissa, bias, largest = (7, 52, 1023, 2047) if double else (3, 23, 127, 255)
    d, w = source.unpack("BI")
    assert d <= whole
    rests = Bytes(source.take(w * (whole - d)))
    codes = read_codes(source, header, expected, n)
    steps = header.lane_steps(n)
    bits = np.zeros(n, np.uint64 if double else np.uint32)
    for block in range(0, steps, 16):
        for lane in range(LANES):
            begin = lane * steps + block
            for i in range(begin, min(begin + min(16, steps - block), n)):
                code = codes[i]
                if code == 0:
                    continue
                w -= 1
                rest = int.from_bytes(rests.take(whole - d), "little") << 8 * d
                exponent = code - 1 + bias if code > 0 else code + bias
                assert 0 <= exponent <= largest and rest >> mantissa < 2
                sign, low = rest >> mantissa, rest & ((1 << mantissa) - 1)
                bits[i] = sign << (63 if double else 31) | exponent << mantissa | low
    assert w == 0
    return bits.view(header.dtype)


def decode_chunk(
    chunk: bytes, header: Header, expected: Expectations, first: int, n: int
) -> np.ndarray:
    source = Bytes(chunk)
    mode = source.one("B")
    if mode == RAW:
        values = np.frombuffer(source.take(n * header.dtype.itemsize), header.dtype)
    else:
        assert header.flags & EXPECTATIONS
        if mode == LOSSLESS:
            values = decode_lossless(source, header, expected, n)
        else:
            assert mode == QUANTISED and header.step > 0
            values = decode_quantised(source, header, expected, first, n)
    assert source.at == len(chunk)
    return values


def modes(stream: bytes) -> list[int]:
    """Return the mode of each chunk."""
    return [chunk[0] for chunk, *_ in split(stream)[2]]


def split(stream: bytes) -> tuple[Header, Expectations, list[tuple[bytes, int, int]]]:
    """Return the header, expectations, and (bytes, first value, values) of each chunk."""
    source = Bytes(stream)
    header = read_header(source)
    expected = read_expectations(source, header)
    capacity = LANES * header.full_steps
    form = "II" if header.flags & CHECKSUMS else "I"
    table = [source.unpack(form) for _ in range(-(-header.count // capacity))]
    chunks = []
    for i, (size, *checksums) in enumerate(table):
        chunk = source.take(size)
        assert all(checksum(chunk) == expected for expected in checksums)
        chunks.append((chunk, i * capacity, min(capacity, header.count - i * capacity)))
    assert source.at == len(stream)
    return header, expected, chunks


def decode(stream: bytes) -> np.ndarray:
    header, expected, chunks = split(stream)
    parts = [np.zeros(0, header.dtype)]
    parts += [decode_chunk(chunk, header, expected, first, n) for chunk, first, n in chunks]
    return np.concatenate(parts).reshape(header.shape)

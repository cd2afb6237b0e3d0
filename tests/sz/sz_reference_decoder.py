"""A decoder written from sz/FORMAT.md alone, slow and plain, to check the library against."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

LANES, CONTEXTS, ONE, START = 32, 30, 1024, 1 << 15
KEEP_SIGN, DITHER, CHECKSUMS, FREQUENCIES, FACTOR = 1, 2, 4, 8, 16
RAW, LOSSLESS, QUANTISED = 0, 1, 2
ESCAPE, LAST_SYMBOL = 63, 54


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
    assert version == 3 and flags < 32 and kind < 2 and axes <= 32
    _bound, step = source.unpack("dd")
    seed, row, rows, neighbourhood = source.unpack("IIII")
    shape = source.unpack(f"{axes}Q")
    (factor,) = source.unpack("d") if flags & FACTOR else (1.0,)
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


def read_description(bits: Bits, last: int) -> list[int]:
    """Return the symbol of each of the 1024 slots, lowest first."""
    frequencies = []
    length = 0
    for _ in range(last + 1):
        ones = 0
        while bits.take(1):
            ones += 1
        length += (ones + 1) // 2 if ones % 2 else -(ones // 2)
        assert 0 <= length <= 10
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


def slots_of(frequencies: list[int]) -> list[tuple[int, int, int]]:
    """Return (symbol, frequency, slot - start) of each slot."""
    return [
        (symbol, frequency, i)
        for symbol, frequency in enumerate(frequencies)
        for i in range(frequency)
    ]


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


def read_codes(source: Bytes, header: Header, slots: list, n: int) -> list[int]:
    skip, w = source.unpack("BI")
    assert skip < 8
    states = list(source.unpack("32I"))
    words = iter(source.unpack(f"{w}H"))
    raw_bytes = Bytes(source.rest())
    raw = Bits(raw_bytes)
    raw.take(skip)
    steps = header.lane_steps(n)
    codes = [0] * n
    for step, i in order_of_coding(n, steps):
        left, up, corner, right = neighbours(header, codes, steps, step, i)
        p = median(left, up, left + up - corner)
        a = abs(left - corner) + abs(corner - up) + abs(up - right)
        context = 5 * sum(limit <= a for limit in (1, 2, 4, 9, 24)) + min(max(p, -2), 2) + 2
        lane = i // steps
        x = states[lane]
        symbol, frequency, offset = slots[context][x % ONE]
        x = frequency * (x // ONE) + offset
        states[lane] = x if x >= START else x << 16 | next(words)
        codes[i] = code_of(symbol, p, raw)
    assert next(words, None) is None
    assert states == [START] * LANES
    assert raw.left == 0 and raw_bytes.at == len(raw_bytes.data)
    return codes


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


def decode_quantised(source: Bytes, header: Header, slots: list, first: int, n: int) -> np.ndarray:
    e = source.one("I")
    positions = list(source.unpack(f"{e}I"))
    exact = np.frombuffer(source.take(e * header.dtype.itemsize), header.dtype)
    codes = read_codes(source, header, slots, n)
    steps = header.lane_steps(n)
    values = np.empty(n, header.dtype)
    for i, code in enumerate(codes):
        lane, t = divmod(i, steps)
        d = dither_of(first + lane * steps + t // 2, t, header.seed)
        values[i] = value_of(header, code, d)
    values[positions] = exact
    return values


def decode_lossless(source: Bytes, header: Header, slots: list, n: int) -> np.ndarray:
    double = header.dtype == np.float64
    whole, mantissa, bias, largest = (7, 52, 1023, 2047) if double else (3, 23, 127, 255)
    d, w = source.unpack("BI")
    assert d <= whole
    rests = Bytes(source.take(w * (whole - d)))
    codes = read_codes(source, header, slots, n)
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


def decode_chunk(chunk: bytes, header: Header, slots: list, first: int, n: int) -> np.ndarray:
    source = Bytes(chunk)
    mode = source.one("B")
    if mode == RAW:
        values = np.frombuffer(source.take(n * header.dtype.itemsize), header.dtype)
    else:
        assert header.flags & FREQUENCIES
        if mode == LOSSLESS:
            values = decode_lossless(source, header, slots, n)
        else:
            assert mode == QUANTISED and header.step > 0
            values = decode_quantised(source, header, slots, first, n)
    assert source.at == len(chunk)
    return values


def modes(stream: bytes) -> list[int]:
    """Return the mode of each chunk."""
    return [chunk[0] for chunk, *_ in split(stream)[2]]


def split(stream: bytes) -> tuple[Header, list, list[tuple[bytes, int, int]]]:
    """Return the header, the contexts' slots, and (bytes, first value, values) of each chunk."""
    source = Bytes(stream)
    header = read_header(source)
    slots = []
    if header.flags & FREQUENCIES:
        slots = [slots_of(frequencies) for frequencies in read_frequencies(source)]
    capacity = LANES * header.full_steps
    form = "II" if header.flags & CHECKSUMS else "I"
    table = [source.unpack(form) for _ in range(-(-header.count // capacity))]
    chunks = []
    for i, (size, *checksums) in enumerate(table):
        chunk = source.take(size)
        assert all(checksum(chunk) == expected for expected in checksums)
        chunks.append((chunk, i * capacity, min(capacity, header.count - i * capacity)))
    assert source.at == len(stream)
    return header, slots, chunks


def decode(stream: bytes) -> np.ndarray:
    header, slots, chunks = split(stream)
    parts = [np.zeros(0, header.dtype)]
    parts += [decode_chunk(chunk, header, slots, first, n) for chunk, first, n in chunks]
    return np.concatenate(parts).reshape(header.shape)

"""A decoder written from sz/FORMAT.md alone, slow and plain, to check the library against."""

from __future__ import annotations

import struct

import numpy as np

CHUNK, GROUP, CLASSES, LONGEST = 65536, 256, 4, 11


class Bytes:
    """Input read from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, count: int) -> bytes:
        self.at += count
        assert self.at <= len(self.data)
        return self.data[self.at - count : self.at]

    def unpack(self, form: str) -> tuple:
        return struct.unpack("<" + form, self.take(struct.calcsize("<" + form)))


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


def unpack_bits(data: bytes, count: int, bits: int) -> list[int]:
    reader = Bits(Bytes(data))
    return [reader.take(bits) for _ in range(count)]


def read_lengths(source: Bytes) -> dict[int, int]:
    (last,) = source.take(1)
    bits = Bits(source)
    by_ones = bits.take(1)
    before: dict[int, int] = {}
    lengths = {}
    for value in range(last + 1):
        slot = bin(value).count("1") if by_ones else 0
        length = before.get(slot, 12)
        if bits.take(1):
            if bits.take(1):
                length = bits.take(4)
            else:
                length += -1 if bits.take(1) else 1
        before[slot] = length
        if length != 12:
            lengths[value] = length
    return lengths


def canonical_codes(lengths: dict[int, int]) -> dict[tuple[int, int], int]:
    codes = {}
    code, before = -1, 0
    for length, value in sorted((length, value) for value, length in lengths.items()):
        code = (code + 1) << (length - before) if before else 0
        before = length
        codes[length, code] = value
    return codes


def read_section(source: Bytes, size: int) -> bytes:
    if size == 0:
        return b""
    (kind,) = source.take(1)
    if kind == 0:
        return source.take(size)
    if kind == 1:
        return source.take(1) * size
    assert kind == 2
    codes = canonical_codes(read_lengths(source))
    sizes = source.unpack("4H")
    quarter = (size + 3) // 4
    out = bytearray()
    for j, stream_size in enumerate(sizes):
        stream = Bytes(source.take(stream_size))
        bits = Bits(stream)
        for _ in range(j * quarter, min(size, (j + 1) * quarter)):
            length, code = 1, bits.take(1)
            while (length, code) not in codes:
                code = code << 1 | bits.take(1)
                length += 1
            out.append(codes[length, code])
        assert stream.at == stream_size
    return bytes(out)


def read_symbols(source: Bytes, count: int) -> list[int]:
    if count == 0:
        return []
    (bits,) = source.take(1)
    (patches,) = source.unpack("H")
    indices, values = source.unpack(f"{patches}H"), source.unpack(f"{patches}H")
    symbols = unpack_bits(read_section(source, (count * bits + 7) // 8), count, bits)
    for index, value in zip(indices, values):
        symbols[index] = value
    return symbols


def wrap(value: int) -> int:
    return (value + 0x8000) % 0x10000 - 0x8000


def unfold(residual: int) -> int:
    residual %= 0x10000
    return residual // 2 if residual % 2 == 0 else -(residual + 1) // 2


def decode_lossless(source: Bytes, n: int) -> np.ndarray:
    mask = np.unpackbits(
        np.frombuffer(read_section(source, (n + 7) // 8), np.uint8), count=n, bitorder="little"
    )
    ones = int(mask.sum())
    words = np.zeros(ones, np.uint32)
    for plane in range(4):
        data = np.frombuffer(read_section(source, ones), np.uint8).astype(np.uint32)
        words |= data << np.uint32(8 * plane)
    values = np.zeros(n, np.uint32)
    values[mask == 1] = words >> np.uint32(1) | words << np.uint32(31)
    return values.view(np.float32)


def decode_quantized(source: Bytes, n: int, step: np.float32, keep_sign: bool) -> np.ndarray:
    groups = (n + GROUP - 1) // GROUP
    headers = read_section(source, groups)
    (exceptions,) = source.unpack("H")
    positions, bits = source.unpack(f"{exceptions}H"), source.unpack(f"{exceptions}I")
    sizes = [(min(GROUP, n - g * GROUP) + 7) // 8 for g in range(groups)]
    members = [[g for g in range(groups) if headers[g] >> 6 == c] for c in range(CLASSES)]
    masks = {}
    for group_list in members:
        section = Bytes(read_section(source, sum(sizes[g] for g in group_list)))
        for g in group_list:
            masks[g] = unpack_bits(section.take(sizes[g]), 8 * sizes[g], 1)
    symbols = {}
    for group_list in members:
        joined = iter(read_symbols(source, sum(sum(masks[g]) for g in group_list)))
        for g in group_list:
            symbols[g] = [next(joined) for _ in range(sum(masks[g]))]

    values = np.zeros(groups * GROUP, np.float32)
    code = 0
    for g in range(groups):
        shift, transform = headers[g] & 15, headers[g] >> 4 & 3
        count = len(symbols[g])
        low = unpack_bits(source.take((count * shift + 7) // 8), count, shift)
        places = [i for i, one in enumerate(masks[g]) if one]
        for place, symbol, rest in zip(places, symbols[g], low):
            residual = symbol << shift | rest
            if transform == 0:
                code = wrap(residual + 1)
            elif transform == 1:
                code = unfold(residual + 1)
            else:
                code = wrap(code + unfold(residual))
            middle = 0.5 * np.sign(code) if keep_sign else 0
            values[g * GROUP + place] = np.float32(code - middle) * step
    values = values[:n]
    values.view(np.uint32)[list(positions)] = bits
    return values


def decode(stream: bytes) -> np.ndarray:
    source = Bytes(stream)
    assert source.take(4) == b"COSZ"
    version, flags, dtype, axes = source.take(4)
    assert (version, flags & ~1, dtype) == (1, 0, 0)
    source.unpack("d")
    step = np.frombuffer(source.take(4), np.float32)[0]
    assert source.unpack("I") == (0,)
    shape = source.unpack(f"{axes}Q")
    count = int(np.prod(shape, dtype=np.int64))
    sizes = source.unpack(f"{(count + CHUNK - 1) // CHUNK}I")
    parts = [np.zeros(0, np.float32)]
    for i, size in enumerate(sizes):
        chunk = Bytes(source.take(size))
        n = min(CHUNK, count - i * CHUNK)
        (mode,) = chunk.take(1)
        if mode == 0:
            parts.append(np.frombuffer(chunk.take(4 * n), np.float32))
        elif mode == 1:
            parts.append(decode_lossless(chunk, n))
        else:
            assert mode == 2 and step > 0
            parts.append(decode_quantized(chunk, n, step, bool(flags & 1)))
        assert chunk.at == size
    assert source.at == len(stream)
    return np.concatenate(parts).reshape(shape)

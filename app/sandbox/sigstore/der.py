"""DER as far as certificates and timestamps need it: a writer, and a bounded reader for requests.

`cryptography` builds certificates, but neither odd subject names nor a timestamp token (RFC 3161); both are few
enough tags to be written out here (ITU-T X.690).
"""

from collections.abc import Iterator
from datetime import datetime

from cryptography import x509

SEQUENCE = 0x30
SET = 0x31
INTEGER = 0x02
BOOLEAN = 0x01
OCTET_STRING = 0x04
OBJECT_IDENTIFIER = 0x06
UTF8_STRING = 0x0C
GENERALIZED_TIME = 0x18


def tlv(tag: int, *content: bytes) -> bytes:
    """One element: tag, definite length, content."""
    body = b"".join(content)
    size = len(body)
    if size < 0x80:
        return bytes([tag, size]) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, 0x80 | len(length)]) + length + body


def sequence(*content: bytes) -> bytes:
    """SEQUENCE of already encoded elements."""
    return tlv(SEQUENCE, *content)


def set_of(*content: bytes) -> bytes:
    """SET OF already encoded elements, in DER order."""
    return tlv(SET, *sorted(content))


def integer(value: int) -> bytes:
    """INTEGER, two's complement, shortest form."""
    return tlv(INTEGER, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def oid(dotted: str) -> bytes:
    """OBJECT IDENTIFIER."""
    first, second, *rest = (int(arc) for arc in dotted.split("."))
    content = b"".join(_base128(arc) for arc in (first * 40 + second, *rest))
    return tlv(OBJECT_IDENTIFIER, content)


def octets(value: bytes) -> bytes:
    """OCTET STRING."""
    return tlv(OCTET_STRING, value)


def utf8(value: str) -> bytes:
    """UTF8String."""
    return tlv(UTF8_STRING, value.encode())


def generalized_time(value: datetime) -> bytes:
    """GeneralizedTime in whole seconds; `value` is UTC."""
    return tlv(GENERALIZED_TIME, value.strftime("%Y%m%d%H%M%SZ").encode())


def context(number: int, *content: bytes, constructed: bool = True) -> bytes:
    """A context-specific tag around `content`."""
    return tlv((0xA0 if constructed else 0x80) | number, *content)


def name(value: x509.Name) -> bytes:
    """A distinguished name as its certificate encodes it."""
    return value.public_bytes()


def _base128(arc: int) -> bytes:
    out = [arc & 0x7F]
    while arc := arc >> 7:
        out.append(0x80 | (arc & 0x7F))
    return bytes(reversed(out))


def elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements that `data` is made of, as (tag, content); raises `ValueError` where it is no DER."""
    at = 0
    while at < len(data):
        tag, content, at = _element(data, at)
        yield tag, content


def single(data: bytes, tag: int) -> bytes:
    """The content of the one element that `data` is; raises `ValueError` otherwise."""
    found, content, end = _element(data, 0)
    if found != tag or end != len(data):
        raise ValueError(f"expected one element with tag {tag:#x}, found tag {found:#x}")
    return content


def _element(data: bytes, at: int) -> tuple[int, bytes, int]:
    if at + 2 > len(data):
        raise ValueError("expected tag and length, found the end")
    tag, size = data[at], data[at + 1]
    at += 2
    if size >= 0x80:
        count = size & 0x7F
        if not 1 <= count <= 4 or at + count > len(data):
            raise ValueError("expected a definite length of at most 4 bytes")
        size = int.from_bytes(data[at : at + count], "big")
        at += count
    if at + size > len(data):
        raise ValueError(f"expected {size} bytes of content, found {len(data) - at}")
    return tag, data[at : at + size], at + size

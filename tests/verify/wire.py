"""Protobuf messages as lists of fields: read, changed and written back with nothing else touched."""


def read_varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


class Message:
    """fields: [number, value] in file order; value is an int, or bytes for all other wire types."""

    def __init__(self, data=b""):
        self.fields = []
        at = 0
        while at < len(data):
            key, at = read_varint(data, at)
            kind = key & 7
            if kind == 0:
                value, at = read_varint(data, at)
            else:
                n = {1: 8, 5: 4}.get(kind)
                if n is None:
                    n, at = read_varint(data, at)
                value, at = bytes(data[at:at + n]), at + n
            self.fields.append([key, value])

    def bytes(self):
        out = []
        for key, value in self.fields:
            out.append(varint(key))
            if key & 7 == 0:
                out.append(varint(value))
            else:
                if key & 7 == 2:
                    out.append(varint(len(value)))
                out.append(value)
        return b"".join(out)

    def add(self, number, value):
        if isinstance(value, Message):
            value = value.bytes()
        if isinstance(value, str):
            value = value.encode()
        self.fields.append([number << 3 | (0 if isinstance(value, int) else 2), value])
        return self

    def all(self, number):
        return [value for key, value in self.fields if key >> 3 == number]

    def first(self, number, default=None):
        return next(iter(self.all(number)), default)

    def text(self, number):
        return self.first(number, b"").decode()

    def edit(self, number, change, where=lambda message: True):
        """Replaces each sub-message `number` for which `where` holds by change(it); None drops it.
        Returns how many there were."""
        kept, met = [], 0
        for key, value in self.fields:
            if key >> 3 == number:
                message = Message(value)
                if where(message):
                    met += 1
                    message = change(message)
                    if message is None:
                        continue
                    value = message.bytes()
            kept.append([key, value])
        self.fields = kept
        return met

    def set(self, number, value, index=0):
        """Replaces the index-th plain field `number`."""
        if isinstance(value, str):
            value = value.encode()
        place = [field for field in self.fields if field[0] >> 3 == number][index]
        place[1] = value
        return self

    def drop(self, number):
        self.fields = [field for field in self.fields if field[0] >> 3 != number]
        return self

"""A WebSocket client that sends precomputed frames. An attacker must cost the machine little, so that the server has the processors:
frames have the mask 0, and responses are parsed only when a caller needs them."""
import asyncio, base64, json, os, re, secrets, struct, zlib

class Refused(Exception):
    """A response that is an error; `case` is its code, or the name of the application's error."""
    def __init__(self, error):
        data = error.get("data") if error.get("code") == "application" else None
        self.case, values = next(iter(data.items())) if data else (error.get("code") or error.get("errorMessage"), {})
        self.values = values if isinstance(values, dict) else {}
        self.wait = (self.values.get("retryAfterMilliseconds") or error.get("retryAfterMilliseconds") or 0) / 1000
        super().__init__(f"{self.case} {error.get('message', '')[:200]}")

class Lost(Exception):
    """The connection ended."""

def frame(text, deflated=False):
    """Returns the frame of a message; `deflated` with permessage-deflate."""
    data = text.encode() if isinstance(text, str) else text
    first = 0x81
    if deflated:
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        data, first = (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4], 0xC1
    size = len(data)
    if size < 126:
        head = bytes([first, 0x80 | size])
    elif size < 1 << 16:
        head = struct.pack(">BBH", first, 0xFE, size)
    else:
        head = struct.pack(">BBQ", first, 0xFF, size)
    return head + bytes(4) + data

def invocation(call, actor, target, arguments=None, **members):
    payload = {"callID": str(call), "actorID": actor, "targetIdentifier": target}
    if arguments is not None:
        payload["arguments"] = arguments
    return json.dumps({"type": "invocation", "payload": payload | members}, separators=(",", ":"))

def old_invocation(call, actor, target, *arguments):
    """Returns an invocation in version 1 of the protocol."""
    encoded = [base64.b64encode(json.dumps(each).encode()).decode() for each in arguments]
    return invocation(call, {"id": actor, "host": "127.0.0.1", "port": 1}, target, encoded)

class Client:
    """One connection. Its host is that of X-Forwarded-For, or loopback without one."""

    @staticmethod
    async def open(port, host=None, version=3, compression=False):
        self = Client()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
        lines = [
            "GET / HTTP/1.1", f"Host: 127.0.0.1:{port}", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {base64.b64encode(os.urandom(16)).decode()}"]
        if version == 3:
            lines.append("Sec-WebSocket-Protocol: trebuchet.v3")
        if host:
            lines.append(f"X-Forwarded-For: {host}")
        if compression:
            lines.append("Sec-WebSocket-Extensions: permessage-deflate")
        self.writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            raise Lost("no response to the upgrade")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise Lost(head.split(b"\r\n")[0].decode())
        self.count, self.calls, self.received = 0, {}, 0
        # Called with each message that is no response to a call of `ask`.
        self.others = lambda body: None
        self.task = asyncio.create_task(self._read())
        return self

    async def _read(self):
        response = re.compile(rb'\{"type":"(?:response|streamStart)","payload":\{(?:"streamID":"[^"]*",)?"callID":"([^"]*)"')
        try:
            while True:
                head = await self.reader.readexactly(2)
                size = head[1] & 127
                if size > 125:
                    size = int.from_bytes(await self.reader.readexactly(2 if size == 126 else 8), "big")
                body = await self.reader.readexactly(size)
                self.received += size
                kind = head[0] & 15
                if kind == 9:
                    self.writer.write(bytes([0x8A, 0x80 | size]) + bytes(4) + body)
                elif kind == 8:
                    break
                elif kind == 1 or kind == 2:
                    found = response.match(body)
                    waiting = self.calls.pop(found[1], None) if found else None
                    if waiting is None:
                        self.others(body)
                    elif not waiting.done():
                        waiting.set_result(body)
        except (asyncio.IncompleteReadError, ConnectionError, OSError):
            pass
        finally:
            for waiting in self.calls.values():
                if not waiting.done():
                    waiting.set_exception(Lost())
                    waiting.exception()
            self.calls = {}
            self.writer.close()

    @property
    def is_open(self): return not self.task.done()

    async def send(self, data):
        """Sends frames; waits while the server does not read."""
        if not self.is_open:
            raise Lost()
        self.writer.write(data)
        try:
            await self.writer.drain()
        except (ConnectionError, OSError):
            raise Lost()

    async def ask(self, call, data):
        """Sends the frame of a call and returns the bytes of its response."""
        waiting = self.calls[str(call).encode()] = asyncio.get_running_loop().create_future()
        await self.send(data)
        return await waiting

    def next(self):
        self.count += 1
        return f"c{self.count}"

    async def call(self, actor, target, *arguments):
        """Calls a method and returns its result; raises `Refused`."""
        number = self.next()
        return result(await self.ask(number, frame(invocation(number, actor, target, list(arguments)))))

    async def observe(self, actor, target, **members):
        """Starts a stream; its messages go to `others`."""
        number = self.next()
        return result(await self.ask(number, frame(invocation(number, actor, target, **members))))

    async def commit(self, collection, mutations, secret):
        """Commits mutations and returns their outcomes; waits while it is refused with a rate."""
        while True:
            try:
                return await self.call(f"collections/{collection}", "commit(_:from:)", mutations, secret)
            except Refused as refusal:
                if not refusal.wait:
                    raise
                await asyncio.sleep(refusal.wait)

    def close(self):
        self.task.cancel()
        self.writer.transport.abort()

def result(body):
    payload = json.loads(body)["payload"]
    if "error" in payload:
        raise Refused(payload["error"])
    if payload.get("errorMessage"):
        raise Refused(payload)
    return payload.get("result")

def secret(): return secrets.token_hex(16)

def create(number, id, **fields): return {"number": number, "command": {"create": {"id": id, "fields": {"id": id} | fields}}}

def update(number, id, **fields): return {"number": number, "command": {"update": {"id": id, "fields": fields}}}

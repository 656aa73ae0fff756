"""Plays the exchanges of Docs/Reference/ServicesProtocol.md against a server. Arguments: the page, the server's URL, and a folder where the
codes of mails are, each in a file named as the address.

A block of the page is indented by four. `> {…}` is sent and `< {…}` has to come, over the connection of the one client or, after a
name, of another. What has `…` in it is a placeholder: bound when it is first met, the same wherever it is met again."""
import asyncio, json, re, secrets, sys
import websockets

class Wrong(Exception):
    pass

class Names:
    """The values of the placeholders of the page."""
    # Different in each run, and numbers in the page.
    LOOSE = {"retryAfterMilliseconds", "createdAt", "updatedAt"}
    # Increasing numbers with gaps.
    ORDERED = {"sequenceNumber", "base", "lastSequence"}
    # Revisions of a collection: the page counts from 0, a server from 64 times the milliseconds at which it loaded the collection.
    REVISIONS = {"revision", "created", "shown"}
    COLLECTIONS = 2

    def __init__(self):
        self.values = {}
        self.begins = set()
        # Streams and their numbers, in one section of the page.
        self.streams = {}
        self.queries = {}

    def fill(self, value, stream=None, name=None):
        """Returns a message of the page in its sent form."""
        if isinstance(value, dict):
            stream = value.get("streamID", stream)
            return {each: self.fill(value[each], stream, each) for each in value}
        if isinstance(value, list):
            return [self.fill(each, stream) for each in value]
        if isinstance(value, str) and "…" in value:
            return self.values.setdefault(value, secrets.token_hex(16))
        if name == "streamID":
            return self.streams.get(value, value)
        if name in self.ORDERED:
            return self.streams.get((stream, value), value)
        return value

    def expect(self, wanted, real, where, stream=None, name=None):
        """Fails unless a message is equal to that of the page."""
        def wrong(why):
            raise Wrong(f"{where}: {why}")
        if isinstance(wanted, dict):
            if not isinstance(real, dict):
                wrong(f"is {real!r} and no object")
            if name == "shown":
                wanted = {str(self.queries.get(int(number), number)): value for number, value in wanted.items()}
            if set(wanted) != set(real):
                wrong(f"has the members {sorted(real)} and not {sorted(wanted)}")
            stream = wanted.get("streamID", stream)
            if "view" in wanted:
                # Numbers of queries are arbitrary.
                self.queries[wanted["number"]] = real["number"]
                wanted = {**wanted, "number": real["number"]}
            for each in wanted:
                inner = name if name == "shown" else each
                self.expect(wanted[each], real[each], f"{where}/{each}", stream, inner)
        elif isinstance(wanted, list):
            if not isinstance(real, list) or len(wanted) != len(real):
                wrong(f"is {real!r}")
            for index, each in enumerate(wanted):
                self.expect(each, real[index], f"{where}/{index}", stream)
        elif wanted == "…":
            if not isinstance(real, str):
                wrong(f"is {real!r} and no text")
        elif isinstance(wanted, str) and "…" in wanted:
            if not isinstance(real, str):
                wrong(f"is {real!r} and no text")
            if self.values.setdefault(wanted, real) != real:
                wrong(f"is {real!r}, and was {self.values[wanted]!r} before")
            # Access tokens of one session and second are equal.
            others = [each for each, value in self.values.items() if value == real and each != wanted]
            if others and name != "accessToken":
                wrong(f"is {real!r}, which has another name in the page too")
        elif name in self.REVISIONS and isinstance(real, int) and real != wanted:
            begin = real - wanted
            if begin not in self.begins and (begin <= 0 or begin % 64 or len(self.begins) == self.COLLECTIONS):
                wrong(f"is {real!r} and not {wanted!r}")
            self.begins.add(begin)
        elif name in self.LOOSE:
            if not isinstance(real, int) or real <= 0:
                wrong(f"is {real!r}")
        elif name == "streamID" or name in self.ORDERED:
            known = wanted if name == "streamID" else (stream, wanted)
            if self.streams.setdefault(known, real) != real:
                wrong(f"is {real!r}, and {wanted!r} was {self.streams[known]!r} before")
        elif wanted != real or isinstance(wanted, bool) != isinstance(real, bool):
            wrong(f"is {real!r} and not {wanted!r}")

def key(message):
    """Returns the key by which messages are ordered: messages of one stream arrive in order, responses at any time."""
    payload = message["payload"]
    kind = message["type"]
    if kind.startswith("stream") and kind != "streamStart":
        return "stream", payload.get("streamID")
    return kind, payload.get("callID")

class Client:
    def __init__(self, url):
        self.url, self.socket, self.unread = url, None, []

    async def connect(self, token=None):
        await self.end()
        protocols = ["trebuchet.v3"] + ([f"bearer.{token}"] if token else [])
        self.socket = await websockets.connect(self.url, subprotocols=protocols, compression=None)

    async def end(self):
        if self.socket:
            self.socket.transport.abort()
            await self.socket.wait_closed()
        self.socket, self.unread = None, []

    async def send(self, message):
        if not self.socket:
            await self.connect()
        await self.socket.send(json.dumps(message))

    async def receive(self, wanted, names):
        """Returns the next message of the same kind and call or stream."""
        kind, name = key(wanted)
        while True:
            for message in self.unread:
                if key(message) == (kind, names.streams.get(name, name)):
                    self.unread.remove(message)
                    return message
            try:
                text = await asyncio.wait_for(self.socket.recv(), 60)
            except asyncio.TimeoutError:
                raise Wrong(f"it does not come; unread: {self.unread}")
            except websockets.ConnectionClosed as closed:
                raise Wrong(f"it does not come: {closed}; unread: {self.unread}")
            self.unread.append(json.loads(text))

    async def settle(self):
        """Reads all messages that the server has sent."""
        if not self.socket:
            return
        await self.send({"type": "hello", "payload": {}})
        while not any(message["type"] == "hello" for message in self.unread):
            self.unread.append(json.loads(await asyncio.wait_for(self.socket.recv(), 60)))
        self.unread = [message for message in self.unread if message["type"] != "hello"]

def steps(text):
    """Returns the numbered lines of the page's blocks, and the headings between them."""
    # An indented line directly after a paragraph or list continues it, and belongs to no block.
    continues = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("## "):
            yield number, "heading", None, line
        message = re.fullmatch(r" {4}(?:(\w+) )?([<>]) (\{.*\})", line)
        event = re.fullmatch(r" {4}\((.*)\)", line)
        if message:
            yield number, message[2], message[1], json.loads(message[3])
        elif event:
            yield number, "event", None, event[1]
        elif line.startswith("    ") and not continues:
            raise Wrong(f"line {number} is no message and nothing that happens")
        continues = bool(line) and not message and not event

async def play(page, url, mails):
    names, clients = Names(), {}
    client = lambda name: clients.setdefault(name, Client(url))
    count = 0
    for number, kind, who, what in steps(open(page, encoding="utf-8").read()):
        try:
            match kind:
                case "heading":
                    for each in clients.values():
                        await each.settle()
                        if each.unread:
                            raise Wrong(f"before it came what the page does not tell: {each.unread}")
                        await each.end()
                    names.streams = {}
                case ">":
                    await client(who).send(names.fill(what))
                    count += 1
                case "<":
                    names.expect(what, await client(who).receive(what, names), what["type"])
                    count += 1
                case "event":
                    await happen(what, names, client, mails)
        except Wrong as wrong:
            raise Wrong(f"line {number}: {wrong}")
    for each in clients.values():
        await each.settle()
        if each.unread:
            raise Wrong(f"the page does not tell of {each.unread}")
    return count

async def happen(what, names, client, mails):
    if mail := re.fullmatch(r"a mail to (\S+) has the code (\S+)", what):
        with open(f"{mails}/{mail[1]}") as file:
            names.values[mail[2]] = file.read().strip()
    elif event := re.fullmatch(r"(?:(\w+) )?connects(?: with (\S+))?", what):
        await client(event[1]).connect(names.values[event[2]] if event[2] else None)
    elif event := re.fullmatch(r"(?:the|(\w+)'s) connection breaks", what):
        each = client(event[1])
        await each.settle()
        if each.unread:
            raise Wrong(f"before it came what the page does not tell: {each.unread}")
        await each.end()
    else:
        raise Wrong(f"what happens here? {what}")

try:
    played = asyncio.run(play(*sys.argv[1:]))
    assert played > 0, "there is nothing to play"
    print("ok")
except Wrong as wrong:
    print(wrong)
    sys.exit(1)

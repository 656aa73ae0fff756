"""An honest client with hand-written JSON of the protocol. Arguments: the server's URL, the name of a dedicated actor, and
for wss the trusted certificate. It prints faults and the durations of its calls in microseconds; it reads 'pause' and 'go'."""
import asyncio, json, ssl, sys, time
import websockets


def say(line):
    print(line, flush=True)


class Client:
    def __init__(self, socket, actor):
        self.socket, self.actor = socket, actor
        self.waiting, self.count, self.total, self.times = {}, 0, 0, []
        self.state, self.sequence, self.ticks, self.last_tick, self.kinds = None, 0, 0, None, {}
        self.started = asyncio.Event()

    def send(self, kind, payload):
        return self.socket.send(json.dumps({"type": kind, "payload": payload}))

    async def call(self, target, *arguments, code=None, **more):
        self.count += 1
        name = str(self.count)
        future = self.waiting[name] = asyncio.get_running_loop().create_future()
        start = time.monotonic()
        await self.send("invocation", {
            "callID": name, "actorID": self.actor, "targetIdentifier": target, "arguments": list(arguments),
            "timeoutMilliseconds": 20_000, **more})
        answer = await asyncio.wait_for(future, 25)
        if code is None and not target.startswith("later"):
            self.times.append(int((time.monotonic() - start) * 1e6))
        error = answer.get("error")
        if (error or {}).get("code") != code:
            say(f"{target} was answered {answer}")
        return answer.get("result")

    async def check(self, expected, target, *arguments, **more):
        result = await self.call(target, *arguments, **more)
        if result != expected:
            say(f"{target} gave {str(result)[:100]}, not {str(expected)[:100]}")

    async def read(self):
        async for text in self.socket:
            message = json.loads(text)
            kind, payload = message["type"], message["payload"]
            if kind == "response":
                self.waiting.pop(payload["callID"]).set_result(payload)
            elif kind == "streamStart":
                self.kinds[payload["streamID"]] = payload["targetIdentifier"]
                self.waiting.pop(payload["callID"]).set_result(payload)
            elif kind == "streamData" and self.kinds[payload["streamID"]] == "observeTicks":
                if self.last_tick is not None and payload["data"] != self.last_tick + 1:
                    say(f"event {payload['data']} came after {self.last_tick}")
                self.last_tick = payload["data"]
            elif kind == "streamData":
                self.update(payload)
            else:
                say(f"got {text[:300]}")
        say("the connection ended")

    def update(self, payload):
        if payload["sequenceNumber"] <= self.sequence:
            say(f"version {payload['sequenceNumber']} came after {self.sequence}")
        if "data" in payload:
            self.state = payload["data"]
        elif payload["base"] != self.sequence:
            say(f"a patch on {payload['base']} came after {self.sequence}")
        else:
            for step in payload["patch"]:
                *way, last = [part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]]
                place = self.state
                for part in way:
                    place = place[part]
                if step["op"] == "remove":
                    del place[last]
                else:
                    place[last] = step["value"]
        self.sequence = payload["sequenceNumber"]

    async def live(self, running, resting):
        await self.call("observeState")
        await self.call("observeTicks")
        say("ready")
        while True:
            if not running.is_set():
                say("took " + " ".join(map(str, self.times)))
                self.times = []
                say("resting")
                await running.wait()
            n = self.count
            await self.check(n + 5, "sum(_:_:)", n, 5)
            await self.check("ü" * (n % 500), "echo(_:)", "ü" * (n % 500))
            await self.check(n, "set(_:)", n)
            # The changes of a call arrive before its response.
            if self.state is None or self.state["number"] != n:
                say(f"after set({n}) the state is {self.state}")
            self.total += n
            await self.check(self.total, "put(_:)", n, session=self.session)
            await self.check(self.last_tick + 2 if self.last_tick is not None else 2, "tick(_:)", 2)
            if n % 20 == 1:
                await self.call("fail(_:)", "x", code="application")
                await self.call("nobody()", code="methodNotFound")
                await self.check(1, "later(_:)", 1)
            await asyncio.sleep(0.004)


async def main(url, actor, authority=None):
    options = {"ssl": ssl.create_default_context(cafile=authority)} if authority else {}
    running = asyncio.Event()
    running.set()

    def command():
        line = sys.stdin.readline().strip()
        if line == "pause":
            running.clear()
        elif line == "go":
            running.set()

    asyncio.get_running_loop().add_reader(sys.stdin, command)
    async with websockets.connect(url, subprotocols=["trebuchet.v3"], compression=None, **options) as socket:
        client = Client(socket, actor)
        client.session = socket.response.headers["Trebuchet-Session"]
        reading = asyncio.create_task(client.read())
        living = asyncio.create_task(client.live(running, None))
        done, _ = await asyncio.wait([reading, living], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task.exception():
                say(f"the client failed: {task.exception()!r}")


asyncio.run(main(*sys.argv[1:]))

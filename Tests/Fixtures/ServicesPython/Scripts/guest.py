"""A client of services.py for seeds of scripts/stress consistency, controlled by lines on its input: `found`, `play`, `finish N`,
`report`. Arguments: port, name, seed, number of rounds, and the ids of the rooms, separated by commas."""
import asyncio, json, logging, random, sys
from services import Backend, Collection, Connection, Lost, Refused, Room
import websockets

# It warns of writes to a connection that was just lost, which is expected here.
logging.getLogger("asyncio").setLevel(logging.ERROR)

def say(line):
    print(line, flush=True)

class Guest:
    def __init__(self, port, name, seed, rounds, rooms):
        self.name, self.rounds, self.random = name, int(rounds), random.Random(int(seed))
        self.backend = Backend(f"ws://127.0.0.1:{port}")
        self.rooms = {}
        self.shown = {"notes": {}, "diary": {}}
        self.report = {
            "name": name, "rooms": {}, "writers": [], "ownNotes": [], "ownPages": [], "tags": [],
            "writes": 0, "acknowledged": 0, "failures": [], "attempts": 0, "spied": []}
        for room in rooms.split(","):
            self.report["rooms"][room] = {
                "peers": [], "seen": [], "events": [], "acknowledged": [], "unknown": [], "refused": []}

    async def enter(self):
        await self.backend.sign_in("signInAsGuest()")
        for name, report in self.report["rooms"].items():
            room = Room(f"office-{name}", self.presence(name, ""), self.event_handler(report), self.roster_handler(report))
            self.rooms[name] = self.backend.add(room)
            await room.is_joined.wait()
        self.notes, self.diary = self.backend.add(Collection("notes")), self.backend.add(Collection("diary"))
        self.notes.query(on_result=lambda documents: self.shown.update(notes=documents))
        self.diary.query(on_result=self.read)

    def presence(self, room, mood):
        return {"name": self.name, "room": room, "mood": mood}

    def event_handler(self, report):
        return lambda event: report["events"].append(event["payload"]) if event["topic"] == "talk" else None

    def roster_handler(self, report):
        def see(peers):
            report["peers"] = [peer["data"] for peer in peers]
            report["seen"] = sorted({*report["seen"], *(f"{peer['data']['name']}@{peer['data']['room']}" for peer in peers)})
        return see

    def read(self, documents):
        self.shown["diary"] = documents
        self.report["writers"] = sorted({*self.report["writers"], *(page["owner"] for page in documents.values())})

    # Commands

    async def perform(self, words):
        match words:
            case ["found"]:
                await self.notes.write(create={"id": "shared", "fields": self.note("shared", "all")})
            case ["play"]:
                self.playing = asyncio.create_task(self.play())
                return
            case ["finish", number]:
                for name, room in self.rooms.items():
                    room.show(self.presence(name, number))
                    await self.publish(int(number), name)
        listed = lambda documents: list(documents.values())
        say("report " + json.dumps({
            **self.report, "notes": listed(self.shown["notes"]), "diary": listed(self.shown["diary"]),
            "isWaiting": self.notes.is_waiting or self.diary.is_waiting}))

    async def play(self):
        spying = asyncio.create_task(self.spy())
        for number in range(1, self.rounds + 1):
            writes = [asyncio.create_task(self.write()) for _ in range(3)]
            await asyncio.sleep(0)
            for name, room in self.rooms.items():
                room.show(self.presence(name, str(number)))
                await self.publish(number, name)
            for write in writes:
                try:
                    await write
                    self.report["acknowledged"] += 1
                except Refused as refused:
                    self.report["failures"].append(str(refused))
            say("round")
            if self.random.randrange(3) == 0:
                # The next connection renews the session.
                self.backend.access = None
        spying.cancel()
        say("played")

    async def publish(self, number, name):
        label = f"{self.name}.{name}.{number}"
        report = self.report["rooms"][name]
        try:
            await self.rooms[name].publish("talk", label)
            report["acknowledged"].append(label)
        except Lost:
            report["unknown"].append(label)
        except Refused as refused:
            # The node that owned the room may have distributed it before it was lost.
            report["unknown" if refused.code == "unknownOutcome" else "refused"].append(label)

    def note(self, name, owner):
        return {"id": name, "owner": owner, "text": "", "count": 0, "tags": []}

    def write(self):
        """Makes one write that detects a repeated execution. The number is that of the call."""
        report, notes, pages, tags = self.report, self.report["ownNotes"], self.report["ownPages"], self.report["tags"]
        report["writes"] += 1
        label = f"{self.name}-{report['writes']}"
        link = lambda target: {"id": "shared", "field": "tags", "target": target}
        match self.random.randrange(9):
            case 0 if notes:
                note = notes.pop(self.random.randrange(len(notes)))
                return self.notes.write(delete={"id": note["id"]})
            case 1 | 2 if notes:
                note = self.random.choice(notes)
                note["count"] += 1
                return self.notes.write(update={"id": note["id"], "fields": {"count": note["count"]}})
            case 3:
                report["text"] = label
                return self.notes.write(update={"id": "shared", "fields": {"text": label}})
            case 4 if tags:
                return self.notes.write(unlink=link(tags.pop(self.random.randrange(len(tags)))))
            case 4 | 5:
                tags.append(label)
                return self.notes.write(link=link(label))
            case 6:
                pages.append(self.note(label, self.name))
                return self.diary.write(create={"id": label, "fields": dict(pages[-1])})
            case 7 if pages:
                page = self.random.choice(pages)
                page["count"] += 1
                return self.diary.write(update={"id": page["id"], "fields": {"count": page["count"]}})
            case _:
                notes.append(self.note(label, self.name))
                return self.notes.write(create={"id": label, "fields": dict(notes[-1])})

    # Forbidden requests

    async def spy(self):
        """Requests a room that it is not in, and pages of others; reports all received data."""
        foreign = [f"rooms/office-{number}" for number in ("1", "2", "3", "4") if number not in self.rooms]
        while True:
            await asyncio.sleep(0.1)
            try:
                connection = await Connection.open(self.backend.url, self.backend.access)
                # It has no token while it rejoins a deactivated room.
                token = next(iter(self.rooms.values())).token or "0" * 26
                for room in foreign:
                    for stream in ("observeRoster", "observeEvents"):
                        values = await connection.observe(room, stream)
                        await self.expect_refusal(values.get(), f"{stream} of {room}")
                    for call in (
                        ("history(topic:after:limit:)", None, None, None), ("publish(topic:payload:)", "talk", "spy.0.0"),
                        ("setPresence(_:)", {"name": "spy", "room": "0", "mood": ""}),
                        ("join(presence:token:attempt:)", None, token, None),
                    ):
                        await self.expect_refusal(connection.call(room, *call), f"{call[0]} of {room}")
                await self.expect_refusal(
                    connection.call("rooms/office-locked", "join(presence:token:attempt:)", None, None, None), "the locked room")
                await self.expect_refusal(connection.call("room-lists/office", "list(after:limit:)", None, None), "the list")
                values = await connection.observe("collection-views/" + "0" * 32, "observeResult")
                await self.expect_refusal(values.get(), "a view that was guessed")
                await connection.close()
            except (Lost, OSError, TimeoutError, EOFError, websockets.WebSocketException):
                pass

    async def expect_refusal(self, answer, what):
        self.report["attempts"] += 1
        try:
            got = await answer
            if isinstance(got, Exception):
                raise got
            self.report["spied"].append(f"{what}: {got}")
        except Refused:
            pass

async def main(*arguments):
    guest = Guest(*arguments)
    await guest.enter()
    say("joined")
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        await guest.perform(line.decode().split())
        if guest.backend.task.done():
            guest.backend.task.result()

asyncio.run(main(*sys.argv[1:]))

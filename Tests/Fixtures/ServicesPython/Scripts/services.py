"""A client of the services: sign-in, rooms, topics and collections. It is written from Docs/Reference/ServicesProtocol.md alone and meant
to be read beside it: simple rather than fast."""
import asyncio, copy, json, os, secrets, time
import websockets

class Lost(Exception):
    """The connection ended before the response."""

class Refused(Exception):
    """A response that is an error."""
    def __init__(self, error):
        super().__init__(error.get("message"), error.get("data"))
        self.code = error.get("code")
        data = error.get("data") if self.code == "application" else None
        self.case, self.values = next(iter(data.items())) if data else (None, {})
        self.wait = (self.values.get("retryAfterMilliseconds") or error.get("retryAfterMilliseconds") or 0) / 1000

    @property
    def may_pass(self):
        """Returns whether the same call may succeed later."""
        cases = {"rateLimited", "storeFailed", "unknownOutcome", "closed", "otherAccount", "roomClosed", "roomFull", "serverFull", "tooManySessions", "unavailable"}
        return self.case in cases or self.code in {"rateLimited", "timeout", "internal", "unavailable", "cancelled", "unknownOutcome"}

def delay(failures):
    """Returns the delay: a tenth of a second, doubling up to ten seconds."""
    return min(0.1 * 2 ** min(failures, 10), 10)

# MARK: Patches

def place(path):
    return [each.replace("~1", "/").replace("~0", "~") for each in path.split("/")[1:]]

def patched(value, patch):
    """Applies a patch (RFC 6902), with the operations that services send."""
    value = copy.deepcopy(value)
    for operation in patch:
        path = place(operation["path"])
        if not path:
            value = operation["value"]
            continue
        if operation["op"] == "move":
            moved, source = value, operation["from"]
            for name in place(source):
                moved = moved[int(name)] if isinstance(moved, list) else moved[name]
            value = patched(value, [{"op": "remove", "path": source}])
            value = patched(value, [{"op": "add", "path": operation["path"], "value": moved}])
            continue
        parent = value
        for name in path[:-1]:
            parent = parent[int(name)] if isinstance(parent, list) else parent[name]
        name = path[-1]
        if isinstance(parent, list):
            name = len(parent) if name == "-" else int(name)
            if operation["op"] == "add":
                parent.insert(name, operation["value"])
                continue
        if operation["op"] == "remove":
            del parent[name]
        else:
            assert operation["op"] == "add" or isinstance(parent, list) or name in parent, operation
            parent[name] = operation["value"]
    return value

# MARK: Connections

class Stream:
    def __init__(self, values):
        self.values, self.last, self.value = values, None, None
        self.name = self.epoch = None

    def start(self, payload):
        """Starts the stream, or resumes it at the next owner of its actor, under this name."""
        self.name = payload["streamID"]
        if payload["epoch"] != self.epoch:
            # Without a number the next value is whole, and numbers start again.
            self.epoch, self.last = payload["epoch"], payload.get("sequenceNumber")

class Connection:
    """One connection: calls, answered in any order, and streams, whose queues end with an exception."""

    def __init__(self, socket):
        self.socket, self.count = socket, 0
        self.is_refused = False
        self.calls, self.beginning, self.streams = {}, {}, {}
        # By the calls that started them.
        self.begun = {}
        self.reader = asyncio.create_task(self.read())

    @staticmethod
    async def open(url, token=None):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        # A lost peer is detected within seconds.
        socket = await websockets.connect(
            url, subprotocols=["trebuchet.v3"], additional_headers=headers, compression=None, ping_interval=1,
            ping_timeout=2, open_timeout=5, close_timeout=1, max_size=64 << 20)
        return Connection(socket)

    async def close(self):
        await self.socket.close()
        await self.reader

    async def ended(self):
        """Raises an error for unexpected messages."""
        await asyncio.shield(self.reader)

    async def send(self, kind, payload):
        try:
            await self.socket.send(json.dumps({"type": kind, "payload": payload}))
        except websockets.ConnectionClosed:
            raise Lost()

    async def begin(self, actor, target, arguments=None):
        """Sends a call; the caller awaits the result."""
        if self.reader.done():
            raise Lost()
        self.count += 1
        call = str(self.count)
        answer = self.calls[call] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(lambda answer: answer.cancelled() or answer.exception())
        payload = {"callID": call, "actorID": actor, "targetIdentifier": target}
        if arguments is not None:
            payload["arguments"] = list(arguments)
        await self.send("invocation", payload)
        return call, answer

    async def call(self, actor, target, *arguments):
        _, answer = await self.begin(actor, target, arguments)
        return await answer

    async def observe(self, actor, target):
        """Returns a queue of the values of a stream; its last entry is an exception."""
        call, answer = await self.begin(actor, target)
        values = asyncio.Queue()
        self.beginning[call] = values
        answer.add_done_callback(lambda answer: self.did_not_begin(call, answer))
        return values

    def did_not_begin(self, call, answer):
        if not answer.cancelled() and answer.exception() and (values := self.beginning.pop(call, None)):
            values.put_nowait(answer.exception())

    async def read(self):
        try:
            async for text in self.socket:
                await self.take(json.loads(text))
        except websockets.ConnectionClosed:
            pass
        finally:
            for answer in self.calls.values():
                if not answer.done():
                    answer.set_exception(Lost())
            for stream in self.streams.values():
                stream.values.put_nowait(Lost())

    async def take(self, message):
        payload = message["payload"]
        match message["type"]:
            case "response":
                answer = self.calls.pop(payload["callID"], None)
                if answer and not answer.done():
                    if "error" in payload:
                        answer.set_exception(Refused(payload["error"]))
                    else:
                        answer.set_result(payload.get("result"))
            case "streamStart":
                call = payload["callID"]
                self.calls.pop(call, None)
                if values := self.beginning.pop(call, None):
                    self.begun[call] = Stream(values)
                if stream := self.begun.get(call):
                    self.streams.pop(stream.name, None)
                    stream.start(payload)
                    self.streams[stream.name] = stream
            case "streamData":
                stream = self.streams.get(payload["streamID"])
                if not stream or stream.last is not None and payload["sequenceNumber"] <= stream.last:
                    return
                if "patch" in payload:
                    assert payload["base"] == stream.last, "a patch of another value"
                    stream.value = patched(stream.value, payload["patch"])
                else:
                    stream.value = payload["data"]
                stream.last = payload["sequenceNumber"]
                stream.values.put_nowait(stream.value)
            case "streamError" | "streamEnd":
                stream = self.streams.pop(payload["streamID"], None)
                if stream:
                    self.begun = {call: other for call, other in self.begun.items() if other is not stream}
                    stream.values.put_nowait(Refused({"code": payload.get("code"), "message": payload.get("errorMessage")}))
            case "goAway":
                # It answers the received calls, and then closes.
                pass
            case "error" if payload["code"] == "unauthenticated":
                # The session has ended; the next connection requests the reason.
                self.is_refused = True
                self.socket.transport.abort()
            case "error":
                raise AssertionError(f"the server does not understand: {payload}")

# MARK: Sign-in

class Backend:
    """A server: keeps a signed-in connection, and passes each new one to its users."""

    def __init__(self, url, file=None):
        self.url, self.file = url, file
        self.user = self.access = None
        self.good_until = 0
        self.refresh = None
        if file and os.path.exists(file):
            with open(file) as token_file:
                self.refresh = token_file.read()
        self.connection = None
        self.parts, self.users = [], []
        self.connections = 0
        self.task = asyncio.create_task(self.run())
        self.is_connected = asyncio.Event()

    def take(self, grant):
        """Stores the token before its first use."""
        self.keep(grant["refreshToken"])
        self.user, self.access = grant["user"], grant["accessToken"]
        self.good_until = time.monotonic() + grant["accessSeconds"] * 4 / 5

    def keep(self, token):
        self.refresh = token
        if self.file:
            descriptor = os.open(self.file + ".new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w") as token_file:
                token_file.write(token or "")
            os.replace(self.file + ".new", self.file)

    async def call(self, *call):
        """Repeats a call until it is answered."""
        failures = 0
        while True:
            await self.is_connected.wait()
            connection = self.connection
            try:
                return await connection.call(*call)
            except Lost:
                await connection.ended()
            except Refused as refused:
                if not refused.may_pass:
                    raise
                await asyncio.sleep(refused.wait or delay(failures))
            failures += 1

    async def sign_in(self, target, *arguments):
        """Repeats the sign-in after a lost response; a code may be used up by then."""
        while True:
            try:
                await self.is_connected.wait()
                grant = await self.connection.call("auth", target, *arguments)
            except Lost:
                await asyncio.sleep(0.05)
                continue
            self.take(grant)
            return grant["user"]

    async def sign_out(self):
        try:
            await self.call("auth", "signOut(_:)", self.refresh)
        except Refused as refused:
            if refused.case != "sessionEnded":
                raise
        self.keep(None)
        self.user = self.access = None

    async def connect(self):
        if self.access and time.monotonic() < self.good_until:
            return await Connection.open(self.url, self.access)
        connection = await Connection.open(self.url)
        if self.refresh:
            # Before any other call, so that all others are made by the user.
            try:
                self.take(await connection.call("auth", "refresh(_:)", self.refresh))
            except Refused as refused:
                if refused.case != "sessionEnded":
                    await connection.close()
                    raise
                self.keep(None)
                self.user = None
        return connection

    async def run(self):
        failures = 0
        while True:
            try:
                self.connection = await self.connect()
            except websockets.InvalidStatus as status:
                if status.response.status_code == 401:
                    self.access = None
            except (Lost, Refused, OSError, TimeoutError, EOFError, websockets.WebSocketException):
                pass
            else:
                failures = 0
                self.connections += 1
                self.is_connected.set()
                for part in self.parts:
                    self.start(part)
                try:
                    await self.connection.ended()
                finally:
                    self.is_connected.clear()
                    if self.connection.is_refused:
                        self.access = None
                    await self.stop()
            await asyncio.sleep(min(delay(failures), 0.5))
            failures += 1

    def add(self, part):
        self.parts.append(part)
        if self.is_connected.is_set():
            self.start(part)
        return part

    def start(self, part):
        """Runs a task; its exception ends the connection."""
        connection = self.connection
        user = asyncio.create_task(part.use(connection))
        user.add_done_callback(lambda user: user.cancelled() or user.exception() and connection.socket.transport.abort())
        self.users.append(user)

    async def stop(self):
        users, self.users = self.users, []
        for user in users:
            user.cancel()
        for outcome in await asyncio.gather(*users, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    async def close(self):
        self.task.cancel()
        if self.connection:
            await self.connection.close()

# MARK: Rooms

class Room:
    """A room with a membership of this client until the program ends."""

    def __init__(self, name, presence, on_event=lambda event: None, on_roster=lambda roster: None):
        self.name, self.presence = f"rooms/{name}", presence
        self.on_event, self.on_roster = on_event, on_roster
        self.attempt, self.token = secrets.token_urlsafe(24), None
        self.sessions = set()
        self.epoch, self.last, self.earlier = None, None, []
        self.missed = 0
        self.shown = None
        self.peers = []
        self.outbox = []
        self.changed = asyncio.Event()
        self.is_joined = asyncio.Event()

    # Calls of the app

    def show(self, presence):
        self.presence = presence
        self.changed.set()

    async def publish(self, topic, payload):
        """Raises `Lost` if the outcome is unknown."""
        outcome = asyncio.get_running_loop().create_future()
        self.outbox.append((topic, payload, outcome))
        self.changed.set()
        return await outcome

    # Over one connection

    async def use(self, connection):
        failures = 0
        while True:
            try:
                await self.join(connection)
                readers = [asyncio.create_task(reader(connection)) for reader in (self.follow_roster, self.follow_events)]
                talking = asyncio.create_task(self.talk(connection))
                try:
                    for done in (await asyncio.wait(readers + [talking], return_when=asyncio.FIRST_COMPLETED))[0]:
                        done.result()
                finally:
                    self.is_joined.clear()
                    for task in readers + [talking]:
                        task.cancel()
                    await asyncio.gather(*readers, talking, return_exceptions=True)
            except Lost:
                return
            except Refused as refused:
                match refused.case:
                    case "unknownToken" | "roomClosed":
                        self.token = None
                    case "notYours":
                        self.token, self.attempt = None, secrets.token_urlsafe(24)
                    case "notJoined" | "notSignedIn" | None:
                        pass
                    case _ if not refused.may_pass:
                        raise
                await asyncio.sleep(refused.wait or delay(failures))
                failures += 1

    async def join(self, connection):
        presence = self.presence
        ticket = await connection.call(
            self.name, "join(presence:token:attempt:)", presence, self.token, self.attempt)
        self.token = ticket["token"]
        self.sessions.add(ticket["session"])
        events = ticket["events"]
        earlier = events.get("earlier", [])[-8:]
        if self.epoch is None:
            self.last = events["last"]
        elif self.epoch != events["epoch"]:
            # The newest epoch that both know; a restored room knows only an earlier one.
            theirs = {each["epoch"]: each["last"] for each in [*earlier, events]}
            mine = [*self.earlier, {"epoch": self.epoch, "last": self.last}]
            known = [each for each in mine if each["epoch"] in theirs]
            self.last = min(self.last, known[-1]["last"], theirs[known[-1]["epoch"]]) if known else 0
        self.epoch, self.earlier, self.shown = events["epoch"], earlier, presence
        self.is_joined.set()

    async def follow_roster(self, connection):
        rosters = await connection.observe(self.name, "observeRoster")
        while True:
            roster = await rosters.get()
            if isinstance(roster, Exception):
                raise roster
            in_order = sorted(roster["members"].items(), key=lambda member: int(member[0]))
            self.peers = [member for _, member in in_order if member["id"] not in self.sessions]
            self.on_roster(self.peers)

    async def follow_events(self, connection):
        while True:
            events = await connection.observe(self.name, "observeEvents")
            await self.catch_up(connection)
            while True:
                event = await events.get()
                if isinstance(event, Refused) and event.code == "overflow":
                    break
                if isinstance(event, Exception):
                    raise event
                if event["number"] > self.last + 1:
                    await self.catch_up(connection)
                self.take(event)

    async def catch_up(self, connection):
        while True:
            try:
                for event in await connection.call(self.name, "history(topic:after:limit:)", None, self.last, None):
                    self.take(event)
                return
            except Refused as refused:
                if refused.case != "rateLimited":
                    raise
                await asyncio.sleep(refused.wait)

    def take(self, event):
        if event["number"] <= self.last:
            return
        self.missed += event["number"] - self.last - 1
        self.last = event["number"]
        if event["peer"] not in self.sessions:
            self.on_event(event)

    async def talk(self, connection):
        """Sends one call after the other, to keep their order."""
        while True:
            self.changed.clear()
            try:
                if self.shown != self.presence:
                    presence = self.presence
                    self.shown = object()
                    await connection.call(self.name, "setPresence(_:)", presence)
                    self.shown = presence
                if self.outbox:
                    await self.publish_next(connection)
                    continue
            except Refused as refused:
                if refused.case != "rateLimited":
                    raise
                await asyncio.sleep(refused.wait)
                continue
            if self.shown == self.presence and not self.outbox:
                await self.changed.wait()

    async def publish_next(self, connection):
        topic, payload, outcome = self.outbox[0]
        try:
            number = await connection.call(self.name, "publish(topic:payload:)", topic, payload)
            end = lambda: outcome.set_result(number)
        except (Lost, asyncio.CancelledError):
            # The outcome is unknown.
            self.outbox.pop(0)
            if not outcome.done():
                outcome.set_exception(Lost())
            raise
        except Refused as error:
            # Not executed: repeated after a join, or after a delay.
            if error.case in ("notJoined", "roomClosed", "rateLimited"):
                raise
            refused = error
            end = lambda: outcome.set_exception(refused)
        self.outbox.pop(0)
        if not outcome.done():
            end()

# MARK: Collections

class Write:
    def __init__(self, number, command):
        self.number, self.command = number, command
        self.revision = None
        self.outcome = asyncio.get_running_loop().create_future()
        self.outcome.add_done_callback(lambda outcome: outcome.cancelled() or outcome.exception())

class Query:
    def __init__(self, query, on_result):
        self.query, self.on_result, self.result = query, on_result, None
        self.view = self.number = None
        # Confirmed positions: the result is complete up to `confirmed`; at the first of `expected`, up to the second.
        self.confirmed, self.expected = -1, None

    @property
    def seen(self):
        return max(self.result["revision"], self.confirmed) if self.result else -1

    def opened(self, ticket):
        if self.view != ticket["view"]:
            self.confirmed, self.expected = -1, None
        self.view, self.number = ticket["view"], ticket["number"]
        self.confirm(ticket["shown"], ticket["revision"])

    def confirm(self, shown, through):
        if self.result and self.result["revision"] >= shown:
            self.confirmed = max(self.confirmed, through)
        elif not self.expected or self.expected[0] <= shown:
            self.expected = (shown, through)

    def came(self, result):
        self.result = result
        if self.expected and self.expected[0] <= result["revision"]:
            self.confirmed, self.expected = max(self.confirmed, self.expected[1]), None

class Collection:
    def __init__(self, name):
        self.name = f"collections/{name}"
        self.secret, self.number = secrets.token_urlsafe(24), 0
        self.writes = []
        self.queries = []
        self.has_writes = asyncio.Event()
        self.has_queries = asyncio.Event()

    def query(self, query={"conditions": [], "order": []}, on_result=lambda shown: None):
        made = Query(query, on_result)
        self.queries.append(made)
        self.has_queries.set()
        return made

    async def write(self, **command):
        """Executes a command such as `create={"id": …, "fields": …}`; raises `Refused`."""
        self.number += 1
        write = Write(self.number, command)
        self.writes.append(write)
        self.has_writes.set()
        self.show()
        return await write.outcome

    @property
    def is_waiting(self):
        return any(write.revision is None for write in self.writes)

    async def use(self, connection):
        tasks = [asyncio.create_task(self.send(connection)), asyncio.create_task(self.follow_all(connection))]
        try:
            await asyncio.gather(*tasks)
        except Lost:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def send(self, connection):
        failures = 0
        while True:
            batch = [write for write in self.writes if write.revision is None][:32]
            if not batch:
                self.has_writes.clear()
                await self.has_writes.wait()
                continue
            mutations = [{"number": write.number, "command": write.command} for write in batch]
            try:
                outcomes = await connection.call(self.name, "commit(_:from:)", mutations, self.secret)
                failures = 0
            except Refused as refused:
                if refused.may_pass:
                    await asyncio.sleep(refused.wait or delay(failures))
                    failures += 1
                    continue
                outcomes = [{"number": write.number, "revision": 0, "error": {refused.case or refused.code: {}}} for write in batch]
            through = max((outcome["revision"] for outcome in outcomes), default=0)
            for number, shown in (outcomes[-1].get("shown") or {}).items() if outcomes else ():
                for query in self.queries:
                    if query.number == int(number):
                        query.confirm(shown, through)
            self.settle({outcome["number"]: outcome for outcome in outcomes})

    def settle(self, outcomes):
        for write in [write for write in self.writes if write.number in outcomes]:
            outcome = outcomes[write.number]
            if "error" in outcome:
                self.writes.remove(write)
                if not write.outcome.done():
                    write.outcome.set_exception(Refused({"code": "application", "data": outcome["error"]}))
            else:
                write.revision = outcome["revision"]
                if not write.outcome.done():
                    write.outcome.set_result(write.revision)
        self.show()

    async def follow_all(self, connection):
        followed = {}
        try:
            while True:
                for query in self.queries:
                    if query not in followed:
                        followed[query] = asyncio.create_task(self.follow(connection, query))
                self.has_queries.clear()
                news = asyncio.create_task(self.has_queries.wait())
                done, _ = await asyncio.wait([news, *followed.values()], return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in followed.values():
                task.cancel()

    async def follow(self, connection, query):
        failures = 0
        while True:
            try:
                ticket = await connection.call(self.name, "open(_:)", query.query)
                if query.view != ticket["view"]:
                    # Another view, perhaps of a restarted server.
                    query.result = None
                query.opened(ticket)
                results = await connection.observe(ticket["view"], "observeResult")
                while True:
                    result = await results.get()
                    if isinstance(result, Exception):
                        raise result
                    failures = 0
                    query.came(result)
                    self.show()
            except Refused as refused:
                # The view was deactivated; other errors are final.
                if refused.code != "actorNotFound" and not refused.may_pass and refused.case:
                    raise
                await asyncio.sleep(refused.wait or delay(failures))
                failures += 1

    def show(self):
        # Retained until all results include it.
        seen = min((query.seen for query in self.queries), default=None)
        self.writes = [write for write in self.writes if write.revision is None or seen is not None and write.revision > seen]
        for query in self.queries:
            if query.result:
                query.on_result(self.over(query))

    def over(self, query):
        """Returns the documents of a result, with the writes that it does not include."""
        documents = {document["id"]: document["fields"] for document in query.result["documents"]}
        for write in self.writes:
            if write.revision is None or write.revision > query.seen:
                perform(write.command, documents)
        return documents

def perform(command, documents):
    """Applies a command as the server does."""
    kind, values = next(iter(command.items()))
    document = documents.get(values["id"])
    match kind:
        case "create" if document is None:
            documents[values["id"]] = dict(values["fields"])
        case "delete":
            documents.pop(values["id"], None)
        case "update" if document is not None:
            changed = {**document, **values["fields"]}
            documents[values["id"]] = {name: value for name, value in changed.items() if value is not None}
        case "link" | "unlink" if document is not None:
            present = document.get(values["field"])
            targets = [each for each in (present if isinstance(present, list) else []) if each != values["target"]]
            if kind == "link":
                targets.append(values["target"])
            documents[values["id"]] = {**document, values["field"]: targets}

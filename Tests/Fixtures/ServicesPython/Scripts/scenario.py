"""Two clients with services.py and a server. Arguments: the server's URL and the folder of the mails."""
import asyncio
import time, sys
from services import Backend, Collection, Connection, Lost, Refused, Room
import websockets

backends = []

async def until(condition, what):
    # Long, because the machine may be busy with other tests.
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if condition():
            return
        for backend in backends:
            if backend.task.done():
                backend.task.result()
        await asyncio.sleep(0.005)
    raise AssertionError(f"not within a minute: {what}")

def code(mails, address):
    with open(f"{mails}/{address}") as file:
        return file.read().strip()

async def cut(backend):
    """Drops the connection; returns when there is another one."""
    before = backend.connections
    backend.connection.socket.transport.abort()
    await until(lambda: backend.connections > before and backend.is_connected.is_set(), "another connection")

async def refused(call):
    try:
        await call
    except Refused as error:
        return error.case or error.code
    raise AssertionError("it was not refused")

async def sign_in(url, mails):
    ada, bob = Backend(url, f"{mails}/ada.token"), Backend(url, f"{mails}/bob.token")
    backends.extend([ada, bob])
    guest = await ada.sign_in("signInAsGuest()")
    assert "email" not in guest and guest["isGuest"]
    await ada.call("auth", "sendMagicCode(to:)", "ada@example.org")
    wrong = "%06d" % ((int(code(mails, "ada@example.org")) + 1) % 1_000_000)
    assert await refused(ada.sign_in("verifyMagicCode(email:code:)", "ada@example.org", wrong)) == "wrongCode"
    user = await ada.sign_in("verifyMagicCode(email:code:)", "ada@example.org", code(mails, "ada@example.org"))
    assert user == {"id": guest["id"], "email": "ada@example.org", "isGuest": False}
    await bob.sign_in("signInAsGuest()")

    # With the access token, and without it: by the refresh token, including the repetition of a used one.
    await cut(ada)
    before, ada.access = ada.refresh, None
    await cut(ada)
    assert ada.user == user and ada.refresh != before
    connection = await Connection.open(url)
    again = await connection.call("auth", "refresh(_:)", before)
    assert again["refreshToken"] == ada.refresh
    await connection.close()

    # A token may be a subprotocol, and an invalid one is answered with 401.
    socket = await websockets.connect(url, subprotocols=["trebuchet.v3", f"bearer.{ada.access}"])
    assert socket.subprotocol == "trebuchet.v3"
    await socket.close()
    try:
        await Connection.open(url, "made.up.token")
        raise AssertionError("a made-up token is good")
    except websockets.InvalidStatus as status:
        assert status.response.status_code == 401

    # A session that another client ends: the client is notified, requests the reason, and becomes anonymous.
    dora = Backend(url)
    await dora.sign_in("signInAsGuest()")
    connection = await Connection.open(url, dora.access)
    await connection.call("auth", "signOut(_:)", dora.refresh)
    await until(lambda: dora.user is None and dora.is_connected.is_set(), "the notice of the end")
    assert dora.refresh is None
    await connection.close()
    await dora.close()

    # A session that the client has ended, and uses again.
    carl = Backend(url)
    await carl.sign_in("signInAsGuest()")
    old = carl.refresh
    await carl.sign_out()
    carl.refresh = old
    await cut(carl)
    assert carl.refresh is None and carl.user is None
    await carl.close()
    return ada, bob

async def rooms(ada, bob):
    received = {"ada": [], "bob": []}
    note = lambda name: lambda event: received[name].append((event["topic"], event["payload"]))
    one = ada.add(Room("chat-lobby", {"name": "Ada"}, note("ada")))
    other = bob.add(Room("chat-lobby", {"name": "Bob"}, note("bob")))
    shown = lambda room: [(peer["data"], peer.get("principal")) for peer in room.peers]
    await until(lambda: shown(one) == [({"name": "Bob"}, bob.user["id"])], "Ada sees Bob")
    await until(lambda: shown(other) == [({"name": "Ada"}, ada.user["id"])], "Bob sees Ada")
    other.show({"name": "Bob", "typing": True, "at": {"x/y~": [1, 2]}})
    await until(lambda: shown(one)[0][0] == other.presence, "Ada sees what Bob changed")

    # Events keep their order, and arrive only at other members.
    await asyncio.gather(*(one.publish("emoji", number) for number in range(5)))
    await until(lambda: received["bob"] == [("emoji", number) for number in range(5)], "Bob receives the events of Ada")
    assert received["ada"] == []

    # A reconnected member receives missed events; the others see no departure, and its later change.
    peer = one.peers[0]["id"]
    bob.connection.socket.transport.abort()
    other.show({"name": "Bob", "back": True})
    for number in range(5, 8):
        await one.publish("emoji", number)
    await until(lambda: len(received["bob"]) == 8, "Bob receives the missed events")
    assert received["bob"] == [("emoji", number) for number in range(8)] and other.missed == 0
    await until(lambda: shown(one) == [({"name": "Bob", "back": True}, bob.user["id"])], "Ada sees Bob's change")
    assert one.peers[0]["id"] == peer and len(other.sessions) == 1

    # No client can observe a room that it is not in, or use the membership of another user.
    connection = await Connection.open(ada.url)
    assert await refused(connection.call("rooms/chat-lobby", "history(topic:after:limit:)", None, None, None)) == "notJoined"
    values = await connection.observe("rooms/chat-lobby", "observeEvents")
    assert (await values.get()).case == "notJoined"
    assert await refused(connection.call("rooms/chat-lobby", "join(presence:token:attempt:)", None, one.token, None)) == "notSignedIn"
    assert await refused(connection.call("rooms/chat-lobby", "publish(topic:payload:)", "emoji", 1)) == "notJoined"
    assert await refused(connection.call("rooms/chat-lobby", "join(presence:token:attempt:)", None, None, "short")) == "invalidName"
    await connection.call("auth", "signInAsGuest()")
    assert await refused(connection.call("rooms/chat-lobby", "join(presence:token:attempt:)", None, one.token, None)) == "notYours"
    await connection.call("rooms/chat-lobby", "join(presence:token:attempt:)", "I show a text", None, None)
    await until(lambda: "I show a text" in [peer["data"] for peer in one.peers], "Ada sees the third")
    rosters = await connection.observe("rooms/chat-lobby", "observeRoster")
    await rosters.get()
    await connection.call("rooms/chat-lobby", "leave(token:)", None)
    while not isinstance(ended := await rosters.get(), Exception):
        pass
    assert ended.code == "unauthorized"
    await until(lambda: "I show a text" not in [peer["data"] for peer in one.peers], "the third has left")
    large = "x" * 16_384
    assert await refused(one.publish("emoji", large)) == "payloadTooLarge"
    await connection.close()

async def collections(ada, bob):
    shown = {}
    one, other = ada.add(Collection("todos")), bob.add(Collection("todos"))
    one.query(on_result=lambda documents: shown.update(ada=documents))
    other.query(
        {"conditions": [{"field": "done", "comparison": "notEqual", "value": True}], "order": [{"field": "title", "isDescending": True}], "limit": 10},
        lambda documents: shown.update(bob=documents))
    await until(lambda: shown == {"ada": {}, "bob": {}}, "empty results")
    await one.write(create={"id": "1", "fields": {"id": "1", "title": "Milk"}})
    assert shown["ada"] == {"1": {"id": "1", "title": "Milk"}}
    await until(lambda: shown["bob"] == shown["ada"], "Bob sees what Ada wrote")
    for command, case in [
        ({"create": {"id": "1", "fields": {"id": "1"}}}, "alreadyExists"),
        ({"update": {"id": "2", "fields": {"title": "Oats"}}}, "notFound"),
        ({"create": {"id": "2", "fields": {"id": "3"}}}, "invalidDocument"),
        ({"create": {"id": "2", "fields": {"id": "2", "text": "x" * 65_536}}}, "documentTooLarge"),
    ]:
        assert await refused(one.write(**command)) == case, case
    assert await refused(other.write(delete={"id": "1"})) == "forbidden"
    assert shown["ada"] == {"1": {"id": "1", "title": "Milk"}}

    # Without a connection writes are shown and pending; of more than 32 each is executed once.
    ada.connection.socket.transport.abort()
    writes = [asyncio.create_task(one.write(update={"id": "1", "fields": {"title": f"Milk {number}"}})) for number in range(40)]
    writes += [asyncio.create_task(one.write(link={"id": "1", "field": "tags", "target": number})) for number in range(40)]
    await asyncio.sleep(0)
    assert shown["ada"]["1"]["title"] == "Milk 39" and one.is_waiting
    await cut(ada)
    await cut(ada)
    await asyncio.gather(*writes)
    await until(lambda: shown["bob"] == {"1": {"id": "1", "title": "Milk 39", "tags": list(range(40))}}, "all writes, once")
    await until(lambda: shown["ada"] == shown["bob"] and not one.writes, "Ada sees it too")

    # A repeated write is answered and not executed again; outcomes before the last 32 are not recorded.
    commit = lambda numbers, command: ada.call(one.name, "commit(_:from:)", [{"number": number, "command": command} for number in numbers], one.secret)
    last = one.number
    again = await commit([last], {"link": {"id": "1", "field": "tags", "target": 39}})
    assert len(again) == 1 and again[0]["number"] == last and "error" not in again[0] and shown["bob"]["1"]["tags"] == list(range(40))
    assert (await commit([last], {"delete": {"id": "1"}}))[0]["error"] == {"numberReused": {}}
    assert (await commit([1], {"delete": {"id": "1"}}))[0]["error"] == {"outdated": {}}
    assert await refused(commit(range(last + 1, last + 34), {"delete": {"id": "x"}})) == "invalidDocument"
    await one.write(update={"id": "1", "fields": {"done": True, "tags": None}})
    await until(lambda: shown["bob"] == {}, "it does not meet Bob's condition")
    assert shown["ada"] == {"1": {"id": "1", "title": "Milk 39", "done": True}}
    assert await refused(ada.call(one.name, "open(_:)", {"conditions": [], "order": [], "limit": 0})) == "invalidQuery"
    assert await refused(ada.call("collections/a b", "open(_:)", {"conditions": [], "order": []})) == "invalidName"

async def main(url, mails):
    ada, bob = await sign_in(url, mails)
    await rooms(ada, bob)
    await collections(ada, bob)
    for backend in (ada, bob):
        assert not backend.task.done(), backend.task.exception()
        await backend.close()

asyncio.run(main(*sys.argv[1:]))
print("ok")

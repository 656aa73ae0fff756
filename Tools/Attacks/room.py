"""Attacks on rooms: presences, rosters, and who is a member."""
import asyncio, json
from attack import attack
from client import Client, Refused, frame, old_invocation, result, secret
from honest import presence, write
from server import Server

ATTACKER = "10.0.0.1"
JOIN = "join(presence:token:attempt:)"

async def join(client, room, value):
    """Joins; waits while it is refused with a rate."""
    while True:
        try:
            return await client.call(f"rooms/{room}", JOIN, value, None, secret())
        except Refused as refusal:
            if not refusal.wait:
                raise
            await asyncio.sleep(refusal.wait)

@attack("S3", "10 members patch presences of 58 KB, 11 KB/s together", [presence("chat-1"), write("other")])
async def large_presences(attacker):
    clients = []
    for each in range(10):
        client = await Client.open(attacker.port, ATTACKER)
        await join(client, "chat-1", {f"group{group}": {f"name{name}": "x" * 8 for name in range(45)} for group in range(60)})
        await client.observe("rooms/chat-1", "observeRoster")
        clients.append(client)
    await attacker.begin()
    count = refused = 0
    async def patch(client):
        nonlocal count, refused
        while attacker.runs:
            count += 1
            try:
                await client.call("rooms/chat-1", "patchPresence(_:)", {f"group{count % 60}": {f"name{count % 45}": str(count)}})
            except Refused as refusal:
                refused += 1
                await asyncio.sleep(refusal.wait)
            await asyncio.sleep(0.1)
    await asyncio.gather(*(patch(each) for each in clients))
    return {"attack": f"{count} patches, {refused} refused"}

@attack("S8-PRESENCES", "one host joins rooms with 205 MB of presences that are many small values", [presence("chat-1"), write("other")])
async def many_presences(attacker):
    value = "[" + "[],{}," * 10_500 + "1]"
    def joining(room):
        return frame(f'{{"type":"invocation","payload":{{"callID":"c","actorID":"rooms/{room}","targetIdentifier":"{JOIN}",'
                     f'"arguments":[{value},null,"{secret()}"]}}}}')
    frames = [[joining(f"large-{each % 820}") for each in range(first, 3_260, 40)] for first in range(40)]
    await attacker.begin()
    count, refusals = 0, {}
    async def fill(frames):
        nonlocal count
        client = await Client.open(attacker.port, ATTACKER)
        for data in frames:
            while attacker.runs:
                try:
                    result(await client.ask("c", data))
                    count += 1
                    break
                except Refused as error:
                    refusals[error.case] = refusals.get(error.case, 0) + 1
                    if not error.wait:
                        break
                    await asyncio.sleep(error.wait)
    await attacker.at_most_until_end(*(fill(each) for each in frames))
    return {"attack": f"{count} presences, {count * len(value) / 1e6:.0f} MB; refusals: {refusals}"}

@attack("S10", "20 clients of protocol 1 observe a roster of 4 MiB that changes twice a second", [presence("chat-2"), write("other")])
async def old_clients(attacker): return await observe_large_roster(attacker, 1)

@attack("S10-NEW", "20 clients of protocol 3 observe it", [presence("chat-2"), write("other")])
async def new_clients(attacker): return await observe_large_roster(attacker, 3)

async def observe_large_roster(attacker, version):
    members = []
    for each in range(65):
        client = await Client.open(attacker.port, f"10.0.{each // 14}.1")
        await join(client, "large-1", {"n": 0, "text": "x" * 63_000})
        members.append(client)
    await attacker.begin()
    readers = []
    for each in range(20):
        client = await Client.open(attacker.port, f"10.1.{each // 10}.1", version)
        if version == 3:
            await join(client, "large-1", None)
            await client.observe("rooms/large-1", "observeRoster")
        else:
            result(await client.ask("j", frame(old_invocation("j", "rooms/large-1", JOIN, None, None, secret()))))
            result(await client.ask("o", frame(old_invocation("o", "rooms/large-1", "observeRoster"))))
        readers.append(client)
    count = 0
    while attacker.runs:
        count += 1
        await members[count % 65].call("rooms/large-1", "patchPresence(_:)", {"n": count})
        await asyncio.sleep(0.5)
    received, open = sum(each.received for each in readers), sum(each.is_open for each in readers)
    return {"attack": f"{count} changes, {received / 1e6:.0f} MB to {open} readers"}

@attack("S2", "a member signs out, and another user signs in over the same connection")
def changed_principal(program):
    server = Server(program)
    async def check():
        client, reader = await Client.open(server.port, ATTACKER), await Client.open(server.port, "10.0.0.2")
        ada = await client.call("auth", "signInAsGuest()")
        membership = await join(client, "chat-1", {"name": "Ada"})
        await join(reader, "chat-1", None)
        rosters = []
        reader.others = lambda body: rosters.append(body)
        await reader.observe("rooms/chat-1", "observeRoster")
        await client.call("auth", "signOut(_:)", ada["refreshToken"])
        await client.call("auth", "signInAsGuest()")
        found = []
        for call in [("publish(topic:payload:)", "t", 1), ("patchPresence(_:)", {"name": "Bob"})]:
            try:
                await client.call("rooms/chat-1", *call)
                found.append(f"{call[0]} is accepted in the membership of another user")
            except Refused as error:
                if error.case != "notJoined":
                    found.append(str(error))
        rejoined = await join(client, "chat-1", {"name": "Bob"})
        if rejoined["token"] == membership["token"]:
            found.append("the membership is that of another user")
        await asyncio.sleep(0.5)
        # The last message has the whole roster, or removes the member.
        text = json.dumps(json.loads(rosters[-1])["payload"])
        if membership["session"] in text:
            found.append(f"the roster keeps the member: {text[-300:]}")
        return found
    try:
        found = asyncio.run(check())
    finally:
        server.stop()
    return "; ".join(found) or "the membership ends", not found

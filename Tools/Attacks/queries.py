"""Attacks on the conditions of queries, and on transactions over one document."""
import asyncio
from attack import attack
from client import Client, Refused, create, frame, invocation, result, secret
from collection import ATTACKER, write_steadily
from honest import write

async def conditions_on_one_document(attacker, fields, conditions, rate):
    """Opens 60 queries, each with the conditions of a number, and changes the document that they read."""
    client, own = await Client.open(attacker.port, ATTACKER), secret()
    [outcome] = await client.commit("matched", [create(1, "large", n=0, **fields)], own)
    if "error" in outcome:
        raise RuntimeError(f"the document is refused: {outcome}")
    await attacker.begin()
    reader, count = await Client.open(attacker.port, ATTACKER), 0
    for number in range(60):
        query = {"conditions": [{"field": field, "comparison": comparison, "value": value}
                                for field, comparison, value in conditions(number)], "limit": 1}
        try:
            await reader.call("collections/matched", "open(_:)", query)
            count += 1
        except Refused:
            pass
    writes = await write_steadily(attacker, client, "matched", "large", own, 2, rate)
    return {"attack": f"{count} queries, {writes} writes"}

@attack("CONTAINS", "60 queries of 32 'contains' on an array of 24,400 elements that changes 5 times a second",
        [write("matched"), write("other")])
async def contains(attacker):
    elements = [0] * 24_000 + [f"{each:03}" for each in range(400)]
    return await conditions_on_one_document(
        attacker, {"a": elements}, lambda number: [("a", "contains", f"{(number * 7 + each * 11) % 400:03}") for each in range(32)], 5)

@attack("NESTED-FIELDS", "60 queries of 32 conditions on fields in an object of 4,200 members that changes 10 times a second",
        [write("matched"), write("other")])
async def nested_fields(attacker):
    fields = {"o": {f"k{each:05}": each % 10 for each in range(4_200)}}
    return await conditions_on_one_document(
        attacker, fields, lambda number: [(f"o.k{4_199 - each:05}", "notEqual", 100 + number) for each in range(32)], 10)

@attack("CONTENTION", "4 transactions of 99 merges into an object of 60 KB, while another client changes the document",
        [write("linked"), write("other")])
async def contention(attacker):
    client, own = await Client.open(attacker.port, ATTACKER), secret()
    names = [f"n{each:04}" for each in range(6_200)]
    [outcome] = await client.commit("linked", [create(1, "d", o={name: 0 for name in names}, n=0)], own)
    if "error" in outcome:
        raise RuntimeError(f"the document is refused: {outcome}")
    commands = [{"merge": {"id": "d", "fields": {"o": {names[-1 - each]: each + 1}}}} for each in range(99)]
    await attacker.begin()
    count = refused = 0
    async def merge():
        nonlocal count, refused
        client, own, number = await Client.open(attacker.port, ATTACKER), secret(), 0
        while attacker.runs:
            number += 1
            mutation = [{"number": number, "commands": commands}]
            try:
                result(await client.ask(f"k{number}", frame(invocation(
                    f"k{number}", "collections/linked", "commit(_:from:)", [mutation, own]))))
                count += 1
            except Refused as error:
                refused += 1
                await asyncio.sleep(max(0.1, error.wait))
    async def change():
        return await write_steadily(attacker, client, "linked", "d", own, 2, 150)
    *_, writes = await asyncio.gather(*(merge() for _ in range(4)), change())
    return {"attack": f"{count} transactions, {refused} refused, {writes} writes of another client"}

@attack("EVALUATIONS", "900 connections of a host, each with one read that evaluates an array of 13,000 elements",
        [write("other")])
async def evaluations(attacker):
    client, own = await Client.open(attacker.port, ATTACKER), secret()
    elements = list(range(10, 9_000)) + [f"{each:x}" for each in range(2_000)]
    [outcome] = await client.commit("read", [create(1, "d", a=elements)], own)
    if "error" in outcome:
        raise RuntimeError(f"the document is refused: {outcome}")
    clients = [await Client.open(attacker.port, ATTACKER) for _ in range(900)]
    def query(number):
        conditions = [{"field": "a", "comparison": "contains", "value": elements[-1 - (number + each) % 5_000]} for each in range(3)]
        # Finds nothing, so that responses are small.
        return {"conditions": conditions + [{"field": "z", "comparison": "greater", "value": number}], "limit": 1}
    await attacker.begin()
    count = refused = 0
    async def read(client, number):
        nonlocal count, refused
        while attacker.runs:
            try:
                await client.call("collections/read", "get(_:)", query(number))
                count += 1
            except Refused as error:
                refused += 1
                await asyncio.sleep(max(1, error.wait))
            await asyncio.sleep(1)
    await attacker.at_most_until_end(*(read(each, number) for number, each in enumerate(clients)))
    return {"attack": f"{count} reads, {refused} refused"}

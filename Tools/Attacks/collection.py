"""Attacks on collections: their queries, pages, outcomes and memory."""
import asyncio
from attack import attack
from client import Client, Lost, Refused, create, frame, invocation, result, secret, update
from honest import write

ATTACKER = "10.0.0.1"

async def write_steadily(attacker, client, collection, id, own, number, rate):
    """Changes a field of a document so often a second, and returns the number of writes."""
    count = 0
    while attacker.runs:
        await client.commit(collection, [update(number + count, id, n=count)], own)
        count += 1
        await asyncio.sleep(1 / rate)
    return count

async def open_queries(attacker, collection, queries, per_connection, host, **members):
    """Opens and observes queries, and returns the connections, the number of results, and the first refusal."""
    clients, count, refusal = [], 0, None
    for first in range(0, len(queries), per_connection):
        client = await Client.open(attacker.port, host)
        clients.append(client)
        for query in queries[first:first + per_connection]:
            try:
                opened = await client.call(f"collections/{collection}", "open(_:)", query)
                await client.observe(opened["view"], "observeResult", **members)
                count += 1
            except Refused as error:
                refusal = refusal or str(error)
                if error.wait:
                    await asyncio.sleep(error.wait)
    return clients, count, refusal

@attack("S4", "one connection observes 60 queries for 3.9 MB through filters, and writes 10 times a second",
        [write("large"), write("other")])
async def filtered_queries(attacker):
    client, own = await Client.open(attacker.port, ATTACKER), secret()
    for number in range(1, 66):
        await client.commit("large", [create(number, f"d{number}", n=0, text="x" * 59_500)], own)
    await attacker.begin()
    queries = [{"limit": 100 + each} for each in range(60)]
    part = {"path": "/documents/0/fields/n"}
    [reader], count, refusal = await open_queries(attacker, "large", queries, 60, ATTACKER, filter=part)
    writes = await write_steadily(attacker, client, "large", "d1", own, 100, 10)
    return {"attack": f"{count} queries, {writes} writes, first refusal: {refusal}"}

def unequal(long):
    """620 queries for fields that are not this long text and a number."""
    return [{"conditions": [{"field": "text", "comparison": "notEqual", "value": f"{long}{each:04}"}], "limit": 1} for each in range(620)]

async def long_operands(attacker, host):
    """620 queries whose operands differ from the compared field, of 16 KB, only at the end. Another host has loaded the collection."""
    client, own = await Client.open(attacker.port, "10.9.0.1"), secret()
    long = "x" * 15_800
    await client.commit("matched", [create(1, "a", text=long)], own)
    await attacker.begin()
    readers, count, refusal = await open_queries(attacker, "matched", unequal(long), 62, host)
    async def write(id):
        client, own = await Client.open(attacker.port, host), secret()
        await client.commit("matched", [create(1, id, n=0, text=long)], own)
        return await write_steadily(attacker, client, "matched", id, own, 2, 50)
    writes = await asyncio.gather(*(write(f"w{each}") for each in range(4)))
    return {"attack": f"{count} queries, {sum(writes)} writes, first refusal: {refusal}"}

@attack("MEMORY", "the host that has loaded a collection uses up its memory with queries for another one",
        [write("loaded"), write("other")])
async def used_up_memory(attacker):
    client, own = await Client.open(attacker.port, ATTACKER), secret()
    await client.commit("loaded", [create(1, "d", n=0)], own)
    await client.commit("matched", [create(1, "d", n=0)], own)
    await attacker.begin()
    long = "x" * 15_800
    readers, count, refusal = await open_queries(attacker, "matched", unequal(long), 62, ATTACKER)
    # The collection counts its memory again when it has grown.
    own = secret()
    for number in range(1, 4):
        await attacker.at_most_until_end(client.commit("loaded", [create(number, f"e{number}", text="x" * 50_000)], own))
    return {"attack": f"{count} queries, first refusal: {refusal}"}

@attack("S5", "one host has 620 queries with operands of 16 KB, and writes 200 times a second", [write("matched"), write("other")])
async def operands_of_a_host(attacker): return await long_operands(attacker, ATTACKER)

@attack("S5-LOOPBACK", "the same from loopback, which has no quota of a host", [write("matched"), write("other")])
async def operands_of_loopback(attacker): return await long_operands(attacker, None)

async def many_gets(attacker, connections):
    """Pages of 10,000 documents in the most expensive orders, as many as the rate of a connection admits."""
    client, own = await Client.open(attacker.port, ATTACKER), secret()
    for first in range(0, 9_000, 32):
        await client.commit("scanned", [
            create(first + each + 1, f"d{first + each}", a=(first + each) * 7919 % 9973, b="y" * (each % 40), text="x" * 300)
            for each in range(32) if first + each < 9_000], own)
    await attacker.begin()
    queries = [
        {"conditions": [
            {"field": "a", "comparison": "notEqual", "value": -1 - each}, {"field": "b", "comparison": "notEqual", "value": "z"}],
         "order": [{"field": name, "isDescending": down} for name, down in [("b", True), ("a", False), ("text", True)]],
         "counts": True, "limit": 10_000} for each in range(500)]
    frames = [frame(invocation(f"g{each}", "collections/scanned", "get(_:)", [query])) for each, query in enumerate(queries)]
    async def scan():
        client, answers, errors = await Client.open(attacker.port, ATTACKER), 0, 0
        def other(body):
            nonlocal answers, errors
            answers += 1
            errors += b'"error"' in body[:100]
        client.others = other
        await client.send(b"".join(frames))
        sent = len(frames)
        while attacker.runs and client.is_open:
            await client.send(frames[sent % 500])
            sent += 1
            await asyncio.sleep(0.01)
        return sent, answers, errors, client.received
    done = await asyncio.gather(*(scan() for _ in range(connections)))
    sent, answers, errors, received = (sum(each) for each in zip(*done))
    return {"attack": f"{sent} gets of {sent * len(frames[0]) / 1000:.0f} KB, {answers} responses, {errors} of them errors, "
                      f"{received / 1e6:.0f} MB"}

@attack("S6", "one connection reads pages of 9,000 sorted documents, as many as its rate admits", [write("scanned"), write("other")])
async def gets_of_one(attacker): return await many_gets(attacker, 1)

@attack("S6-24", "24 connections read pages of 9,000 sorted documents", [write("scanned"), write("other")])
async def gets_of_many(attacker): return await many_gets(attacker, 24)

async def large_outcomes(attacker, hosts):
    """Commits of made-up clients whose 32 refusals each have as many found values as are recorded."""
    client, own, id = await Client.open(attacker.port, hosts[0]), secret(), "d" * 128
    await client.commit("found", [create(1, id, f="x" * 250, g="x" * 10_000)], own)
    await attacker.begin()
    mutations = [{"number": each, "command": {"check": {"id": id, "if": {"f": each, "g": each}}}} for each in range(1, 33)]
    text = invocation("c", "collections/found", "commit(_:from:)", [mutations, "?" * 32])
    async def remember(host):
        client, count, refused = await Client.open(attacker.port, host), 0, 0
        while attacker.runs:
            try:
                body = await client.ask("c", frame(text.replace("?" * 32, secret())))
                if b'"error":{"code"' in body[:100]:
                    refused += 1
                    await asyncio.sleep(0.02)
                else:
                    count += 1
            except Lost:
                client = await Client.open(attacker.port, host)
        return count, refused, client.received
    done = await asyncio.gather(*(remember(each) for each in hosts))
    count, refused, received = (sum(each) for each in zip(*done))
    return {"attack": f"{count} commits of {len(text)} bytes, {refused} refused, {received / 1e6:.0f} MB of outcomes"}

@attack("S7", "one host makes up clients whose 32 outcomes with found values are remembered", [write("found"), write("other")])
async def outcomes_of_a_host(attacker): return await large_outcomes(attacker, [ATTACKER] * 8)

@attack("S7-HOSTS", "32 hosts do so", [write("found"), write("other")])
async def outcomes_of_hosts(attacker): return await large_outcomes(attacker, [f"10.0.{each}.1" for each in range(32)])

@attack("S8-DOCUMENTS", "one host writes 205 MB of documents that are many small values", [write("documents-0"), write("other")])
async def many_documents(attacker):
    value = "[" + "[],{}," * 9_500 + "1]"
    def commit(collection, own, first):
        mutations = ",".join(
            f'{{"number":{first + each},"command":{{"create":{{"id":"d{first + each}","fields":{{"id":"d{first + each}","v":{value}}}}}}}}}'
            for each in range(8))
        return frame(f'{{"type":"invocation","payload":{{"callID":"c","actorID":"collections/{collection}",'
                     f'"targetIdentifier":"commit(_:from:)","arguments":[[{mutations}],"{own}"]}}}}')
    # All frames are prepared: 32 collections with 14 commits of 8 documents of 57 KB.
    frames = {f"documents-{each}": [commit(f"documents-{each}", own, 1 + 8 * part) for part in range(14)]
              for each in range(32) for own in [secret()]}
    await attacker.begin()
    count, refusals = 0, {}
    async def fill(names):
        nonlocal count
        client = await Client.open(attacker.port, ATTACKER)
        for name in names:
            for data in frames[name]:
                while attacker.runs:
                    body = await client.ask("c", data)
                    try:
                        outcomes = result(body)
                        count += sum("error" not in each for each in outcomes)
                        for each in outcomes:
                            for case in each.get("error", {}):
                                refusals[case] = refusals.get(case, 0) + 1
                        break
                    except Refused as error:
                        refusals[error.case] = refusals.get(error.case, 0) + 1
                        if not error.wait:
                            break
                        await asyncio.sleep(error.wait)
    names = list(frames)
    await attacker.at_most_until_end(*(fill(names[each::8]) for each in range(8)))
    return {"attack": f"{count} documents, {count * len(value) / 1e6:.0f} MB; refusals: {refusals}"}

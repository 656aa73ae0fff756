"""Honest clients: each does one small thing every 100 ms, and their process measures how late its own timers are."""
import asyncio, gc, time
from client import Client, Refused, create, secret, update

INTERVAL = 0.1

class Probe:
    """What honest clients do: `open` returns a function that does it once."""
    def __init__(self, name, open, clients=6):
        self.name, self.open, self.clients = name, open, clients

def write(collection, clients=6):
    """Writes of one field of one's own small document."""
    async def open(port, host):
        client, own, number = await Client.open(port, host), secret(), 1
        [outcome] = await client.commit(collection, [create(1, own, n=0)], own)
        assert "error" not in outcome, outcome
        async def once():
            nonlocal number
            number += 1
            [outcome] = await client.call(f"collections/{collection}", "commit(_:from:)", [update(number, own, n=number)], own)
            assert "error" not in outcome, outcome
        return once
    return Probe(f"write to '{collection}'", open, clients)

def call(actor, target, *arguments, clients=6, refusal=None):
    """Calls of a method, which may be refused with `refusal`."""
    async def open(port, host):
        client = await Client.open(port, host)
        async def once():
            try:
                await client.call(actor, target, *arguments)
            except Refused as error:
                if error.case != refusal:
                    raise
        return once
    return Probe(f"{actor} {target}", open, clients)

def presence(room, clients=6):
    """Changes of one's own small presence in a room."""
    async def open(port, host):
        client, number = await Client.open(port, host), 0
        await client.call(f"rooms/{room}", "join(presence:token:attempt:)", {"n": 0}, None, secret())
        async def once():
            nonlocal number
            number += 1
            await client.call(f"rooms/{room}", "patchPresence(_:)", {"n": number})
        return once
    return Probe(f"presence in '{room}'", open, clients)

def page(path, clients=4):
    """Requests of a page to its first bytes; a status other than 200 is a failure."""
    async def open(port, host):
        async def once():
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Forwarded-For: {host}\r\n\r\n".encode())
            try:
                head = await reader.readuntil(b"\r\n\r\n")
                assert b" 200 " in head.split(b"\r\n")[0], head[:40]
            finally:
                writer.transport.abort()
        return once
    return Probe(f"GET {path}", open, clients)

def guest(clients=4):
    """Sign-ins of new guests, each from another host."""
    async def open(port, host):
        number, last = 0, host.rsplit(".")[-1]
        async def once():
            nonlocal number
            number += 1
            client = await Client.open(port, f"172.{last}.{number >> 8}.{number & 255}")
            try:
                await client.call("auth", "signInAsGuest()")
            finally:
                client.close()
        return once
    return Probe("guest signs in", open, clients)

def serve_probes(port, probes, pipe):
    """Runs in its own process. Samples are (name, time, duration or None after a failure)."""
    gc.disable()
    asyncio.run(_run(port, probes, pipe))

async def _run(port, probes, pipe):
    samples, failures = [], {}
    tasks = [asyncio.create_task(_lag(samples))]
    for index, probe in enumerate(probes):
        for number in range(probe.clients):
            once = await probe.open(port, f"192.168.{index}.{number + 1}")
            tasks.append(asyncio.create_task(_repeat(probe.name, once, number / probe.clients, samples, failures)))
    pipe.send("ready")
    while not pipe.poll():
        await asyncio.sleep(0.05)
    # Operations without a response count with the time until now.
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    pipe.send((samples, failures))

async def _lag(samples):
    while True:
        start = time.monotonic()
        await asyncio.sleep(0.005)
        samples.append(("lag", start, time.monotonic() - start - 0.005))

async def _repeat(name, once, offset, samples, failures):
    await asyncio.sleep(offset * INTERVAL)
    while True:
        start, failure = time.monotonic(), None
        try:
            await once()
        except asyncio.CancelledError:
            if time.monotonic() - start > INTERVAL:
                _add(samples, name, start)
            raise
        except Exception as error:
            failure = f"{type(error).__name__}: {error}"[:120]
        if failure:
            samples.append((name, start, None))
            failures[failure] = failures.get(failure, 0) + 1
        else:
            _add(samples, name, start)
        await asyncio.sleep(max(0, start + INTERVAL - time.monotonic()))

def _add(samples, name, start):
    """Adds a sample, and one for each operation that would have begun while this one lasted."""
    end = time.monotonic()
    while start < end:
        samples.append((name, start, end - start))
        start += INTERVAL

"""Attacks on pages, compression, the example actors, and the data file."""
import asyncio, os, socket, subprocess
from attack import attack
from client import Client, Lost, Refused, frame, invocation
from honest import call, page, write
from server import Server, free_port

ATTACKER = "10.0.0.1"
NO_ID = "00000000-0000-0000-0000-000000000000"

@attack("S11", "50 connections send calls of 1.1 KB that inflate to 1 MiB", [write("other")], ["--compression"])
async def inflating_calls(attacker):
    # JSON of 1 MiB: small numbers, empty arrays, a text, and arguments of an existing method.
    bodies = ["[" + "0," * 524_000 + "0]", "[" + "[]," * 349_000 + "0]", '"' + "x" * 1_048_000 + '"']
    frames = [frame(invocation("c", "collections/other", "get(_:)", ["?"]).replace('"?"', each), deflated=True) for each in bodies]
    await attacker.begin()
    count = 0
    async def send(number):
        nonlocal count
        client = await Client.open(attacker.port, ATTACKER, compression=True)
        while attacker.runs:
            try:
                await client.ask("c", frames[(number + count) % 3])
                count += 1
            except Lost:
                client = await Client.open(attacker.port, ATTACKER, compression=True)
    await attacker.at_most_until_end(*(send(each) for each in range(50)))
    return {"attack": f"{count} calls of {[len(each) for each in frames]} bytes"}

@attack("CHURN", "one IPv6 /48 opens and closes connections, each with a call", [write("other"), page("/trebuchet.js")])
async def many_connections(attacker):
    await attacker.begin()
    count, refused, text = 0, 0, frame(invocation("g", "auth", "sessions()", []))
    async def open_and_close(number):
        nonlocal count, refused
        while attacker.runs:
            number += 20
            try:
                client = await Client.open(attacker.port, f"2001:db8:7:{number & 0xffff:x}::1")
                await client.ask("g", text)
                client.close()
                count += 1
            except Lost:
                refused += 1
    await attacker.at_most_until_end(*(open_and_close(each) for each in range(20)))
    return {"attack": f"{count} connections, {refused} refused"}

@attack("S12", "serve --examples: 20 connections fill and change the list of to-dos, 100 observe it",
        [call("counter", "increment()"), write("other"), call("todos", "removeTodo(id:)", NO_ID, refusal="id")], ["--examples"])
async def many_todos(attacker):
    await attacker.begin()
    clients = [await Client.open(attacker.port, ATTACKER) for _ in range(20)]
    readers = []
    for _ in range(100):
        readers.append(await Client.open(attacker.port, ATTACKER))
        await readers[-1].observe("todos", "observeState")
    ids, count, refused = [], 0, 0
    async def change(client):
        nonlocal count, refused
        while attacker.runs:
            try:
                if len(ids) < 1_000:
                    ids.append((await client.call("todos", "addTodo(title:)", "x" * 128))["id"])
                else:
                    await client.call("todos", "toggleTodo(id:)", ids[count % len(ids)])
                count += 1
            except Refused:
                refused += 1
                await asyncio.sleep(0.01)
    await attacker.at_most_until_end(*(change(each) for each in clients))
    return {"attack": f"{len(ids)} to-dos, {count} changes, {refused} refused"}

def make_page(folder):
    with open(f"{folder}/large.txt", "w") as file:
        file.write("x" * 5_000_000)

@attack("S17", "8 hosts read a page of 5 MB slowly over 64 connections each", [page("/large.txt"), write("other")],
        ["--static", "{folder}"], make_page)
async def slow_readers(attacker):
    await attacker.begin()
    refused = 0
    async def read(host):
        nonlocal refused
        while attacker.runs:
            # Otherwise the kernel reads the whole page for the client.
            connection = socket.socket()
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            connection.setblocking(False)
            await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", attacker.port))
            reader, writer = await asyncio.open_connection(sock=connection, limit=2_048)
            writer.write(f"GET /large.txt HTTP/1.1\r\nHost: 127.0.0.1:{attacker.port}\r\nX-Forwarded-For: {host}\r\n\r\n".encode())
            try:
                head = await reader.read(512)
                refused += b" 200 " not in head[:20]
                while attacker.runs and await reader.read(1_130):
                    await asyncio.sleep(1)
            except OSError:
                pass
            finally:
                writer.transport.abort()
            await asyncio.sleep(0.5)
    await attacker.at_most_until_end(*(read(f"10.0.{each % 8}.1") for each in range(512)))
    return {"attack": f"{refused} requests of the attacker refused"}

@attack("S15", "a second server opens the data file under another name")
def second_server(program):
    server = Server(program)
    try:
        os.link(f"{server.folder}/data", f"{server.folder}/link")
        with_lock = [each for each in os.listdir(server.folder) if "lock" in each]
        found = []
        for name, removes in [("link", False), ("data", True)]:
            if removes:
                for each in with_lock:
                    os.unlink(f"{server.folder}/{each}")
            command = [program, "serve", "--port", str(free_port()), "--data", f"{server.folder}/{name}"]
            try:
                done = subprocess.run(command, capture_output=True, text=True, timeout=5)
                if done.returncode == 0:
                    found.append(f"a second server ended with 0 for '{name}'")
            except subprocess.TimeoutExpired:
                found.append(f"a second server serves '{name}'")
    finally:
        server.stop()
    return "; ".join(found) or "a second server does not start, also without the lock file", not found

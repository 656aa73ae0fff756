"""Attacks on sign-in: codes, guests, and the mail program."""
import asyncio, collections, os, stat, tempfile
from attack import attack
from client import Client, Lost, Refused, frame, invocation, result
from honest import guest, write
from server import Server

# So many attempts over a connection: as many as its host has at once.
ATTEMPTS = 50
SIGN_IN = frame(invocation("g", "auth", "signInAsGuest()", []))

async def from_hosts(attacker, hosts, act, connections=20):
    """Calls `act` for connections of one host after another, and counts its results and refusals."""
    await attacker.begin()
    counts = collections.Counter()
    async def run(number):
        while attacker.runs:
            number += connections
            client = None
            try:
                client = await Client.open(attacker.port, hosts(number))
                for _ in range(ATTEMPTS):
                    try:
                        counts.update(await act(client))
                    except Refused as error:
                        counts[error.case] += 1
            except Lost as error:
                counts[f"lost {error}"] += 1
                await asyncio.sleep(0.1)
            finally:
                if client:
                    client.close()
    await attacker.at_most_until_end(*(run(each) for each in range(connections)))
    return counts

async def make_guest(client):
    grant = result(await client.ask("g", SIGN_IN))
    # The next guest of this connection is another one.
    await client.call("auth", "signOut(_:)", grant["refreshToken"])
    return ["guests"]

def of_network(number): return f"2001:db8:7:{number & 0xffff:x}::1"

def of_all(number): return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"

@attack("S13", "one IPv6 /48 makes guests", [guest(), write("other")])
async def guests_of_network(attacker):
    counts = await from_hosts(attacker, of_network, make_guest)
    # Four times the burst of a host's attempts, 1 a second after it.
    most = 4 * (50 + attacker.seconds + 2)
    return {"attack": dict(counts)} | ({"missed": f"a network may make {most:.0f} guests in this time"} if counts["guests"] > most else {})

@attack("S13-HOSTS", "many hosts make guests", [guest(), write("other")])
async def guests_of_hosts(attacker): return {"attack": dict(await from_hosts(attacker, of_all, make_guest))}

async def guess(client):
    await client.call("auth", "sendMagicCode(to:)", "ada@example.org")
    for each in range(5):
        try:
            await client.call("auth", "verifyMagicCode(email:code:)", "ada@example.org", f"{each:06}")
        except Refused as error:
            if error.case != "wrongCode":
                raise
        yield "guesses"

@attack("S1", "one IPv6 /48 guesses codes of one address", [guest(), write("other")], ["--mail-command", "true"])
async def guessed_codes(attacker):
    async def act(client): return ["codes"] + [each async for each in guess(client)]
    counts = await from_hosts(attacker, of_network, act)
    # codesPerAddress of a network: 4 times a burst of 5, with 5 tries each.
    return {"attack": dict(counts)} | ({"missed": "a network has 20 codes in this time"} if counts["codes"] > 20 else {})

@attack("S20", "the mail program writes 100 MB with control characters")
def loud_mail_program(program):
    folder = tempfile.mkdtemp(prefix="attacks-")
    script = f"{folder}/mail"
    with open(script, "w") as file:
        file.write("#!/bin/sh\nprintf '\\033[31mred\\033[0m\\n' >&2\nyes 'a line of output' | head -c 100000000 >&2\nexit 1\n")
    os.chmod(script, stat.S_IRWXU)
    server = Server(program, ["--mail-command", script])
    async def send():
        client = await Client.open(server.port, "10.0.0.1")
        try:
            await asyncio.wait_for(client.call("auth", "sendMagicCode(to:)", "ada@example.org"), 40)
        except Refused as error:
            return error.case
    try:
        case = asyncio.run(send())
        text = server.text()
    finally:
        server.stop()
        os.unlink(script)
        os.rmdir(folder)
    is_good = "\033" not in text and len(text) < 100_000
    return f"the log has {len(text)} bytes, {'no' if chr(27) not in text else 'raw'} escapes; the client gets '{case}'", is_good

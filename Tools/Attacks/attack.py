"""The list of attacks, and what they know when they run."""
import asyncio, time
from dataclasses import dataclass

ATTACKS = []

@dataclass
class Attack:
    name: str
    title: str
    function: object
    probes: list
    options: list
    prepare: object

def attack(name, title, probes=(), options=(), prepare=None):
    """Registers an attack.

    With probes, the function runs in its own process. It prepares until `Attacker.begin`, then attacks until the end of its time, and
    returns facts to print; `missed` is a bound that it found exceeded. Without probes, the function is a check: it takes the path of the
    program, and returns a text and whether the result is right. `prepare` makes files in the folder of the server before its start."""
    def register(function):
        ATTACKS.append(Attack(name, title, function, list(probes), list(options), prepare))
        return function
    return register

class Attacker:
    """The port and the time of an attack."""
    def __init__(self, port, seconds, pipe):
        self.port, self.seconds, self.pipe, self.end = port, seconds, pipe, None

    async def begin(self):
        """Ends the preparation: the latency without the attack is measured now."""
        self.pipe.send("ready")
        while not self.pipe.poll():
            await asyncio.sleep(0.02)
        self.pipe.recv()
        self.end = time.monotonic() + self.seconds

    @property
    def runs(self): return time.monotonic() < self.end

    async def until_end(self): await asyncio.sleep(max(0, self.end - time.monotonic()))

    async def at_most_until_end(self, *tasks):
        """Runs tasks, and cancels them at the end."""
        tasks = [asyncio.ensure_future(each) for each in tasks]
        done, others = await asyncio.wait(tasks, timeout=max(0, self.end - time.monotonic()))
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        for task in done:
            task.result()

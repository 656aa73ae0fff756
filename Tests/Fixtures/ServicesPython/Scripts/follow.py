"""Observes a stream until it shows a value, and prints each that comes. Arguments: the URL, the actor, the stream, and the value."""
import asyncio, json, sys
from services import Connection

async def main(url, actor, target, last):
    connection = await Connection.open(url)
    values = await connection.observe(actor, target)
    while True:
        value = await values.get()
        if isinstance(value, Exception):
            raise value
        print(json.dumps(value), flush=True)
        if value == json.loads(last):
            return await connection.close()

asyncio.run(main(*sys.argv[1:]))

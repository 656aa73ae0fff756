"""A foreign server that echoes, for our client. Arguments: nothing, or certificate and key. Prints its port, and a line for
each connection that ends; ends itself with its standard input."""
import asyncio, ssl, sys
import websockets

names = []

async def talk(socket):
    try:
        async for message in socket:
            await answer(socket, message)
    except websockets.ConnectionClosed:
        pass  # with another code than 1000 and 1001
    print("closed", socket.close_code, socket.close_reason, flush=True)

async def answer(socket, message):
    if message == "name":
        await socket.send(str(names[-1]))
    elif message == "path":
        await socket.send(socket.request.path)
    elif message == "fragments":
        await socket.send(["fr", "", "agm", "ents"])
    elif message == "ping":
        await (await socket.ping(b"are you there?"))
        await socket.send("ponged")
    elif message == "close":
        await socket.close(4001, "as asked")
    else:
        await socket.send(message)

async def main(*files):
    context = None
    if files:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*files)
        context.sni_callback = lambda connection, name, context: names.append(name)
    limit = {"max_size": 1 << 24, "subprotocols": ["second", "first"]}
    async with websockets.serve(talk, "127.0.0.1", 0, ssl=context, **limit) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.to_thread(sys.stdin.read)

asyncio.run(main(*sys.argv[1:]))

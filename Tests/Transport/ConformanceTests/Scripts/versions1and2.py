"""A foreign client of versions 1 and 2: no subprotocol, values in base64. Arguments: the URL and the mangled name of
Counter.add(_:)."""
import asyncio, base64, json, sys
import websockets

def wrap(value): return base64.b64encode(json.dumps(value).encode()).decode()
def unwrap(text): return json.loads(base64.b64decode(text))

async def receive(socket):
    message = await asyncio.wait_for(socket.recv(), 60)
    assert isinstance(message, bytes), "answers in binary, as it was asked"
    return json.loads(message)

def invocation(call, actor, target, arguments=None, version=None):
    payload = {"callID": call, "actorID": {"id": actor, "host": "127.0.0.1", "port": 8080}, "targetIdentifier": target}
    if arguments is not None: payload["arguments"] = [wrap(a) for a in arguments]
    payload["genericSubstitutions"] = []
    if version: payload["protocolVersion"] = version
    return json.dumps({"type": "invocation", "payload": payload}).encode()

async def main(url, add):
    for version in (None, 2):
        async with websockets.connect(url) as socket:
            assert socket.subprotocol is None
            await socket.send(invocation("R1", "counter", "reset()", [], version))
            answer = await receive(socket)
            assert answer == {"type": "response", "payload": {"callID": "R1", "result": ""}}, answer
            await socket.send(invocation("O1", "counter", "observeState", [], version))
            start = await receive(socket)
            assert start["type"] == "streamStart" and start["payload"]["actorID"]["id"] == "counter", start
            data = await receive(socket)
            assert unwrap(data["payload"]["data"]) == {"count": 0}, data
            # The mangled name of the program, and the readable one.
            for target, amount, sum in ((add, 3, 3), ("add(_:)", 4, 7)):
                await socket.send(invocation("A1", "counter", target, [amount], version))
                data = await receive(socket)
                assert data["type"] == "streamData" and unwrap(data["payload"]["data"]) == {"count": sum}, data
                assert len(data["payload"]["timestamp"]) == len("2026-11-21T05:50:58Z"), data
                answer = await receive(socket)
                assert unwrap(answer["payload"]["result"]) == sum, answer
            await socket.send(invocation("N1", "nobody", "add(_:)", [1], version))
            answer = await receive(socket)
            assert "nobody" in answer["payload"]["errorMessage"], answer

asyncio.run(main(sys.argv[1], sys.argv[2]))
print("ok")

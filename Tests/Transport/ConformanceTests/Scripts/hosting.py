"""A foreign client that hosts an actor, which the server calls, with the JSON of the protocol typed by hand. Argument: the
server's URL. The server has an actor `host` with enter(_:) and tell(_:)."""
import asyncio, json, secrets, sys
import websockets

async def receive(socket):
    return json.loads(await asyncio.wait_for(socket.recv(), 60))

async def send(socket, kind, **payload):
    await socket.send(json.dumps({"type": kind, "payload": payload}))

async def invoke(socket, call, target, *arguments):
    await send(socket, "invocation", callID=call, actorID="host", targetIdentifier=target, arguments=arguments)

async def introduce(socket, identity):
    await send(socket, "hello", client=identity)
    hello = await receive(socket)
    assert hello["type"] == "hello", hello
    assert hello["payload"]["limits"]["clientActorsPerClient"] > 0, hello
    return hello["payload"]["limits"]

async def expect_call(socket, target, *arguments):
    call = await receive(socket)
    assert call["type"] == "invocation", call
    payload = call["payload"]
    assert payload["actorID"] == "member-1" and payload["targetIdentifier"] == target, call
    assert payload["arguments"] == list(arguments) and 0 < payload["timeoutMilliseconds"] <= 30_000, call
    return payload["callID"]

def connect(url):
    return websockets.connect(url, subprotocols=["trebuchet.v3"], compression=None)

async def main(url):
    # 128 bits from the random source of the system; they identify this client.
    identity = secrets.token_urlsafe(16)
    async with connect(url) as socket:
        limits = await introduce(socket, identity)
        await invoke(socket, "1", "enter(_:)", {"client": "member-1"})
        answer = await receive(socket)
        assert answer == {"type": "response", "payload": {"callID": "1"}}, answer

        # The server calls during a call of this client, and the response is its result.
        await invoke(socket, "2", "tell(_:)", "Hello")
        call = await expect_call(socket, "receive(_:)", "Hello")
        await send(socket, "response", callID=call, result="Python received Hello")
        answer = await receive(socket)
        assert answer["payload"] == {"callID": "2", "result": ["Python received Hello"]}, answer

        # An error, or a response that is too large, ends only its call.
        await invoke(socket, "3", "tell(_:)", "Hello")
        call = await expect_call(socket, "receive(_:)", "Hello")
        await send(socket, "response", callID=call, error={"code": "actorNotFound", "message": "it went home"})
        answer = await receive(socket)
        assert answer["payload"]["result"] == ["actorNotFound", "it went home"], answer
        await invoke(socket, "4", "tell(_:)", "Hello")
        call = await expect_call(socket, "receive(_:)", "Hello")
        await send(socket, "response", callID=call, result="x" * limits["clientAnswerSize"])
        answer = await receive(socket)
        assert answer["payload"]["result"][0] == "internal", answer

        # An abandoned call is cancelled, and a late response is ignored.
        await invoke(socket, "5", "tell(_:)", "Hello")
        call = await expect_call(socket, "receive(_:)", "Hello")
        await send(socket, "cancel", callID="5")
        ends = [await receive(socket), await receive(socket)]
        assert {"type": "cancel", "payload": {"callID": call}} in ends, ends
        assert [end["payload"]["error"]["code"] for end in ends if end["type"] == "response"] == ["cancelled"], ends
        await send(socket, "response", callID=call, result="late")

        # A response without a call is refused.
        await send(socket, "response", callID="1000", result="I know")
        answer = await receive(socket)
        assert answer["type"] == "error", answer
        socket.transport.abort()

    # Another client with a separate identity gets none of the calls; the first gets them over its next connection.
    async with connect(url) as other, connect(url) as socket:
        await introduce(other, secrets.token_urlsafe(16))
        await introduce(socket, identity)
        await invoke(other, "1", "tell(_:)", "again")
        call = await expect_call(socket, "receive(_:)", "again")
        await send(socket, "response", callID=call, result="still here")
        answer = await receive(other)
        assert answer["payload"] == {"callID": "1", "result": ["still here"]}, answer

        # The server does not wait for a client that leaves.
        await send(socket, "goAway", reason="closed")
        await invoke(socket, "9", "enter(_:)", {"client": "member-1"})
        answer = await receive(socket)
        assert answer["payload"]["error"]["code"] == "unavailable", answer
        await invoke(other, "2", "tell(_:)", "gone?")
        answer = await receive(other)
        assert answer["payload"]["result"][0] == "unavailable", answer

asyncio.run(main(*sys.argv[1:]))
print("ok")

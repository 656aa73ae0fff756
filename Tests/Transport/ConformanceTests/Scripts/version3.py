"""A foreign client of version 3, with handwritten JSON of the protocol. Arguments: the server's URL and, for wss,
the trusted certificate and the version of TLS; or "compressed"."""
import asyncio, json, ssl, sys
import websockets

async def receive(socket):
    message = await asyncio.wait_for(socket.recv(), 60)
    assert isinstance(message, str), "answers in text, as it was asked"
    return json.loads(message)

def trusting(authority, version):
    context = ssl.create_default_context(cafile=authority)
    context.minimum_version = context.maximum_version = ssl.TLSVersion[version]
    context.set_alpn_protocols(["h2", "http/1.1"])
    return context

async def main(url, *arguments):
    compressed = arguments == ("compressed",)
    tls = () if compressed else arguments
    options = {"ssl": trusting(*tls)} if tls else {}
    if not compressed:
        options["compression"] = None
    async with websockets.connect(url, subprotocols=["trebuchet.v3"], **options) as socket:
        assert socket.subprotocol == "trebuchet.v3"
        assert [each.name for each in socket.protocol.extensions] == ["permessage-deflate"] * compressed
        if tls:
            connection = socket.transport.get_extra_info("ssl_object")
            assert connection.version().replace(".", "_") == tls[1], connection.version()
            assert connection.selected_alpn_protocol() == "http/1.1"
        await socket.send('{"type":"invocation","payload":{"callID":"o1","actorID":"todos","targetIdentifier":"observeState"}}')
        start = await receive(socket)
        assert start["type"] == "streamStart" and start["payload"]["callID"] == "o1", start
        stream = start["payload"]["streamID"]
        first = (await receive(socket))["payload"]
        assert first["streamID"] == stream and first["data"] == {"todos": []}, first

        await socket.send('{"type":"invocation","payload":{"callID":"a1","actorID":"todos","targetIdentifier":"addTodo(title:)","arguments":["Milk"]}}')
        update = await receive(socket)
        assert update["type"] == "streamData", "the update comes before the answer"
        assert update["payload"]["sequenceNumber"] > first["sequenceNumber"]
        assert [item["title"] for item in update["payload"]["data"]["todos"]] == ["Milk"], update
        answer = await receive(socket)
        assert answer["type"] == "response" and answer["payload"]["callID"] == "a1", answer
        assert answer["payload"]["result"]["title"] == "Milk", answer

        # Over a kilobyte, with spaces: compressed by a client that does.
        long = "Milk " * 25
        await socket.send(json.dumps({"type": "invocation", "payload": {
            "callID": "a2", "actorID": "todos", "targetIdentifier": "addTodo(title:)", "arguments": [long]}}) + " " * 5000)
        last = update["payload"]["sequenceNumber"]
        update = (await receive(socket))["payload"]
        # RFC 6902: less than the whole state, against the version before.
        assert update["base"] == last and "data" not in update, update
        assert [(each["op"], each["path"]) for each in update["patch"]] == [("add", "/todos/-")], update
        assert update["patch"][0]["value"]["title"] == long, update
        assert (await receive(socket))["payload"]["result"]["title"] == long

        # A state over a kilobyte: compressed by a server that does.
        for number in range(10):
            await socket.send(json.dumps({"type": "invocation", "payload": {
                "callID": f"n{number}", "actorID": "todos", "targetIdentifier": "addTodo(title:)", "arguments": [long]}}))
            assert (await receive(socket))["type"] == "streamData"
            assert (await receive(socket))["type"] == "response"
        await socket.send('{"type":"invocation","payload":{"callID":"o2","actorID":"todos","targetIdentifier":"observeState"}}')
        assert (await receive(socket))["type"] == "streamStart"
        whole = (await receive(socket))["payload"]
        assert [item["title"] for item in whole["data"]["todos"]] == ["Milk"] + [long] * 11, whole
        await socket.send(json.dumps({"type": "streamEnd", "payload": {"streamID": whole["streamID"], "reason": "clientUnsubscribed"}}))
        assert (await receive(socket))["type"] == "streamEnd"

        for call, code in [
            ('"actorID":"nobody","targetIdentifier":"x()","arguments":[]', "actorNotFound"),
            ('"actorID":"todos","targetIdentifier":"x()","arguments":[]', "methodNotFound"),
            ('"actorID":"todos","targetIdentifier":"addTodo(title:)","arguments":[]', "invalidArguments"),
            ('"actorID":"todos","targetIdentifier":"addTodo(title:)","arguments":[7]', "invalidArguments"),
        ]:
            await socket.send('{"type":"invocation","payload":{"callID":"e1",' + call + '}}')
            answer = await receive(socket)
            assert answer["payload"]["error"]["code"] == code, answer

        await socket.send(json.dumps({"type": "streamEnd", "payload": {"streamID": stream, "reason": "clientUnsubscribed"}}))
        end = await receive(socket)
        assert end["type"] == "streamEnd" and end["payload"]["streamID"] == stream, end

        for _ in range(10):
            await socket.send("{")
            assert (await receive(socket))["type"] == "error"
        try:
            await asyncio.wait_for(socket.recv(), 60)
            raise AssertionError("ten malformed messages in a row close the connection")
        except websockets.ConnectionClosed as closed:
            assert closed.rcvd.code == 1008, closed

asyncio.run(main(*sys.argv[1:]))
print("ok")

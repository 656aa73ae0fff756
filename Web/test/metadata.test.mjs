// The metadata of calls and of requests of streams.
import assert from "node:assert/strict"
import { test } from "node:test"
import { FakeEnvironment } from "./fakes.mjs"

const requests = (socket) =>
    socket.take().filter(({ type }) => ["invocation", "repeat", "streamResume"].includes(type)).map(({ payload }) => payload)

test("a call sends the metadata of its options, and nothing else without them", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.take()
    client.actor("a").call("f()", [], { metadata: { "request-id": "é\n" } })
    client.actor("a").call("f()")
    const [first, second] = requests(fake.socket)
    assert.deepEqual(first.metadata, { "request-id": "é\n" })
    assert.deepEqual(second, { callID: second.callID, actorID: "a", targetIdentifier: "f()", arguments: [] })
})

test("a repeated call keeps its metadata", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    fake.socket.take()
    client.actor("a").call("f()", [], { metadata: { a: "1" }, idempotent: true })
    assert.deepEqual(requests(fake.socket)[0].metadata, { a: "1" })
    fake.socket.lose()
    await fake.pass(1000)
    fake.socket.greet()
    assert.deepEqual(requests(fake.socket)[0].metadata, { a: "1" })
})

test("the client's function adds metadata to each call and to each request of a stream", async () => {
    const fake = new FakeEnvironment()
    let number = 0
    const metadata = (target, actorID) => (actorID === "none" ? undefined : { a: target + ++number, b: actorID })
    const client = await fake.live({ metadata })
    fake.socket.take()
    client.actor("x").call("f()", [], { metadata: { b: "own" } })
    client.actor("none").call("f()", [], { metadata: { b: "own" } })
    const stop = client.actor("x").state().subscribe(() => {})
    const [first, second, stream] = requests(fake.socket)
    assert.deepEqual(first.metadata, { a: "f()1", b: "own" })
    assert.deepEqual(second.metadata, { b: "own" })
    assert.deepEqual(stream.metadata, { a: "observeState2", b: "x" })
    fake.socket.receive("streamStart", { callID: stream.callID, streamID: "s1", actorID: "x", targetIdentifier: "observeState", epoch: "e" })
    fake.socket.receive("streamData", { streamID: "s1", sequenceNumber: 1, timestamp: "", data: 1 })
    fake.socket.lose()
    await fake.pass(1000)
    fake.socket.greet()
    const again = requests(fake.socket).find(({ actorID, streamID }) => actorID === "x" && streamID)
    assert.deepEqual(again.metadata, { a: "observeState3", b: "x" })
    stop()
})

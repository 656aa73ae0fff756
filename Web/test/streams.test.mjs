import assert from "node:assert/strict"
import { test } from "node:test"
import { actorType, array, date, struct } from "../dist/trebuchet.js"
import { settle, FakeEnvironment } from "./fakes.mjs"

/** Answers a request for a stream; returns the request. */
function begin(socket, terms = {}) {
    const [request] = socket.take().filter(({ payload }) => payload.targetIdentifier)
    assert.ok(request, "a stream is asked for")
    const { callID, actorID, targetIdentifier } = request.payload
    socket.receive("streamStart", { streamID: "s1", callID, actorID, targetIdentifier, epoch: "e1", ...terms })
    return request
}

const data = (socket, sequenceNumber, data, streamID = "s1") => socket.receive("streamData", { streamID, sequenceNumber, data })
const patch = (socket, sequenceNumber, base, patch, streamID = "s1") =>
    socket.receive("streamData", { streamID, sequenceNumber, base, patch })
const streamKinds = (socket) => socket.take().filter(({ type }) => type !== "hello")

/** A live client with one observed state. */
async function observing(target = (client) => client.actor("a").state()) {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const state = target(client)
    const seen = []
    const end = state.subscribe(() => seen.push(state.getSnapshot()))
    const request = begin(fake.socket)
    return { fake, client, state, seen, end, request }
}

test("a state is requested when it is observed, and listeners receive its values", async () => {
    const { fake, state, seen, request } = await observing()
    assert.deepEqual(request, { type: "invocation", payload: { callID: "1", actorID: "a", targetIdentifier: "observeState" } })
    assert.equal(state.getSnapshot(), undefined)
    assert.equal(state.status.getSnapshot().phase, "waiting")
    data(fake.socket, 1, { n: 1 })
    assert.equal(state.status.getSnapshot().phase, "live")
    data(fake.socket, 2, { n: 2 })
    assert.deepEqual(seen, [{ n: 1 }, { n: 2 }])
    assert.equal(state.getSnapshot(), state.getSnapshot())
})

test("nothing is requested before", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const state = client.actor("a").state()
    state.getSnapshot()
    state.at("/x").getSnapshot()
    client.actor("a").events("observeMoves")
    assert.deepEqual(streamKinds(fake.socket), [])
})

test("old values are dropped, and equal ones are not reported", async () => {
    const { fake, state, seen } = await observing()
    data(fake.socket, 5, { n: 5, list: [1] })
    const value = state.getSnapshot()
    data(fake.socket, 5, { n: 4 })
    data(fake.socket, 3, { n: 3 })
    patch(fake.socket, 4, 3, [{ op: "replace", path: "/n", value: 0 }])
    data(fake.socket, 6, { n: 5, list: [1] })
    assert.equal(state.getSnapshot(), value)
    assert.equal(seen.length, 1)
    data(fake.socket, 7, { n: 7, list: [1] })
    assert.equal(state.getSnapshot().list, value.list)
    assert.equal(seen.length, 2)
    data(fake.socket, 8, 0)
    data(fake.socket, 9, null)
    assert.deepEqual(seen.slice(2), [0, null])
})

test("a patch makes a new value that shares unchanged parts", async () => {
    const { fake, state, seen } = await observing()
    data(fake.socket, 1, { todos: [{ id: 1, done: false }, { id: 2, done: false }], name: "x" })
    const before = state.getSnapshot()
    patch(fake.socket, 2, 1, [{ op: "replace", path: "/todos/0/done", value: true }])
    const after = state.getSnapshot()
    assert.deepEqual(before.todos[0], { id: 1, done: false })
    assert.deepEqual(after.todos[0], { id: 1, done: true })
    assert.equal(after.todos[1], before.todos[1])
    assert.equal(seen.length, 2)
})

test("after a patch that does not apply the whole value is requested again", async () => {
    for (const [base, operations] of [[1, [{ op: "remove", path: "/x" }]], [0, [{ op: "add", path: "/x", value: 1 }]], [1, "no patch"]]) {
        const { fake, state, seen } = await observing()
        data(fake.socket, 1, { n: 1 })
        patch(fake.socket, 2, base, operations)
        assert.deepEqual(state.getSnapshot(), { n: 1 })
        assert.equal(state.status.getSnapshot().phase, "stale")
        const [end, ...none] = fake.socket.take()
        assert.deepEqual(none, [])
        await fake.pass(100)
        const [{ type, payload }] = fake.socket.take()
        assert.deepEqual(end, { type: "streamEnd", payload: { streamID: "s1", reason: "clientUnsubscribed" } })
        const { callID, ...rest } = payload
        assert.deepEqual([type, rest], ["invocation", { actorID: "a", targetIdentifier: "observeState" }])
        // Messages in transit are ignored.
        patch(fake.socket, 3, 2, [{ op: "replace", path: "/n", value: 3 }])
        data(fake.socket, 3, { n: 33 })
        fake.socket.receive("streamEnd", end.payload)
        assert.equal(seen.length, 1)
        fake.socket.receive("streamStart", { streamID: "s2", callID, epoch: "e1" })
        data(fake.socket, 3, { n: 3 }, "s2")
        patch(fake.socket, 4, 3, [{ op: "replace", path: "/n", value: 4 }], "s2")
        assert.deepEqual(state.getSnapshot(), { n: 4 })
        assert.equal(state.status.getSnapshot().phase, "live")
    }
})

test("a patch before any value requests the whole value", async () => {
    const { fake, state } = await observing()
    patch(fake.socket, 1, 0, [{ op: "add", path: "", value: 1 }])
    await fake.pass(100)
    assert.deepEqual(fake.socket.take().map(({ type }) => type), ["streamEnd", "invocation"])
    assert.equal(state.getSnapshot(), undefined)
})

test("an observation on a closed client ends with the reason", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    client.close()
    const errors = []
    client.actor("a").events("observeMoves").subscribe(() => {}, ({ code }) => errors.push(code))
    await settle()
    assert.deepEqual(errors, ["unavailable"])
    for (const each of [client.actor("a").state(), client.actor("a").events("observeOthers")]) {
        await assert.rejects((async () => { for await (const _ of each); })(), { code: "unavailable" })
    }
    assert.equal(client.actor("b").state().status.getSnapshot().phase, "waiting")
})

test("after a loss of the connection the value stays, and the stream resumes", async () => {
    const { fake, state, seen } = await observing()
    data(fake.socket, 17, { n: 17 })
    const value = state.getSnapshot()
    fake.socket.lose()
    assert.equal(state.status.getSnapshot().phase, "stale")
    assert.equal(state.getSnapshot(), value)
    await fake.pass(200)
    fake.socket.open()
    const [hello, resume] = fake.socket.take()
    assert.equal(hello.type, "hello")
    assert.equal(resume.type, "streamResume")
    const { callID, ...rest } = resume.payload
    assert.deepEqual(rest, { streamID: "s1", actorID: "a", targetIdentifier: "observeState", epoch: "e1", lastSequence: 17 })
    fake.socket.receive("streamStart", { streamID: "s1", callID, epoch: "e1" })
    // A client with the newest value does not receive it again.
    assert.equal(state.status.getSnapshot().phase, "live")
    patch(fake.socket, 18, 17, [{ op: "replace", path: "/n", value: 18 }])
    assert.deepEqual(seen, [{ n: 17 }, { n: 18 }])
})

test("a stream resumes in another incarnation that has all received versions, else the whole value is sent", async () => {
    for (const [terms, isWhole] of [[{ sequenceNumber: 17 }, false], [{ sequenceNumber: 16 }, true], [{}, true]]) {
        const { fake, state, seen } = await observing()
        data(fake.socket, 17, { n: 17 })
        fake.socket.lose()
        await fake.pass(200)
        fake.socket.greet()
        begin(fake.socket, { streamID: "t", epoch: "e2", ...terms })
        assert.equal(state.status.getSnapshot().phase, isWhole ? "stale" : "live")
        if (isWhole) data(fake.socket, 20, { n: 18 }, "t")
        else patch(fake.socket, 18, 17, [{ op: "replace", path: "/n", value: 18 }], "t")
        assert.deepEqual(seen, [{ n: 17 }, { n: 18 }])
    }
})

test("events resume in another incarnation that has all received ones, else they are lost", async () => {
    for (const [sequenceNumber, isLost] of [[3, false], [2, true], [9, true]]) {
        const fake = new FakeEnvironment()
        const client = await fake.live()
        const seen = []
        client.actor("a").events("observeMoves").subscribe((event) => seen.push(event))
        begin(fake.socket, { sequenceNumber: 2 })
        data(fake.socket, 3, "x")
        fake.socket.lose()
        await fake.pass(200)
        fake.socket.greet()
        begin(fake.socket, { streamID: "t", epoch: "e2", sequenceNumber })
        if (!isLost) data(fake.socket, 4, "y", "t")
        assert.deepEqual(seen, isLost ? ["x"] : ["x", "y"])
    }
})

test("a restarted server has new sequence numbers, and equal values are the same objects", async () => {
    const { fake, state, seen } = await observing()
    data(fake.socket, 17, { n: 1 })
    const value = state.getSnapshot()
    fake.socket.lose()
    await fake.pass(200)
    fake.socket.greet()
    begin(fake.socket, { streamID: "t", epoch: "e2" })
    assert.equal(state.status.getSnapshot().phase, "stale")
    data(fake.socket, 1, { n: 1 }, "t")
    assert.equal(state.status.getSnapshot().phase, "live")
    assert.equal(state.getSnapshot(), value)
    data(fake.socket, 2, { n: 2 }, "t")
    assert.equal(seen.length, 2)
})

test("values of an old connection are ignored after those of the new one", async () => {
    const { fake, client, state } = await observing()
    data(fake.socket, 1, "old")
    const old = fake.socket
    const call = client.actor("a").call("f()")
    old.receive("goAway", { reconnectAfterMilliseconds: 0 })
    // Until the new connection has the stream, it continues.
    data(old, 2, "still")
    assert.equal(state.getSnapshot(), "still")
    await fake.pass(200)
    fake.socket.open()
    data(old, 3, "late")
    assert.equal(state.getSnapshot(), "still")
    old.receive("streamEnd", { streamID: "s1", reason: "serverDraining" })
    begin(fake.socket)
    data(fake.socket, 3, "new")
    assert.equal(state.getSnapshot(), "new")
    fake.socket.receive("hello", {})
    old.receive("response", { callID: "2" })
    await call
})

test("streams of the old connection continue until there is a new one", async () => {
    const { fake, client, state } = await observing()
    const call = client.actor("a").call("f()")
    fake.socket.receive("goAway", { reconnectAfterMilliseconds: 1000 })
    fake.socket.receive("response", { callID: "2" })
    await call
    await fake.pass(500)
    data(fake.socket, 1, "still")
    assert.equal(state.getSnapshot(), "still")
    assert.equal(fake.socket.wasClosed, undefined)
})

test("all observers of one state share one stream, which ends after the last of them", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const [one, two, part] = [client.actor("a").state(), client.actor("a").state(), client.actor("a").state().at("/n")]
    const ends = [one, two, part].map((each) => each.subscribe(() => {}))
    begin(fake.socket)
    assert.deepEqual(streamKinds(fake.socket), [])
    data(fake.socket, 1, { n: 1 })
    assert.equal(one.getSnapshot(), two.getSnapshot())
    assert.equal(part.getSnapshot(), 1)
    for (const end of ends) {
        await fake.pass(1000)
        assert.deepEqual(streamKinds(fake.socket), [])
        end()
        end()
    }
    await fake.pass(99)
    assert.deepEqual(streamKinds(fake.socket), [])
    await fake.pass(1)
    assert.deepEqual(streamKinds(fake.socket), [{ type: "streamEnd", payload: { streamID: "s1", reason: "clientUnsubscribed" } }])
    // The value stays, and a later observer starts the stream again.
    assert.deepEqual(one.getSnapshot(), { n: 1 })
    assert.equal(one.status.getSnapshot().phase, "waiting")
    one.subscribe(() => {})
    const { type } = begin(fake.socket, { streamID: "s2", epoch: "e1" })
    assert.equal(type, "invocation")
    data(fake.socket, 1, { n: 2 }, "s2")
    assert.deepEqual(two.getSnapshot(), { n: 2 })
})

test("an observer that returns at once finds the stream unchanged", async () => {
    const { fake, state, end } = await observing()
    data(fake.socket, 1, { n: 1 })
    end()
    state.subscribe(() => {})
    await fake.pass(1000)
    assert.deepEqual(streamKinds(fake.socket), [])
})

test("a stream whose last observer has left before it starts is cancelled, and ended if it starts", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    client.actor("a").state().subscribe(() => {})()
    const [{ payload }] = streamKinds(fake.socket)
    await fake.pass(99)
    assert.deepEqual(fake.socket.take(), [])
    await fake.pass(1)
    assert.deepEqual(fake.socket.take(), [{ type: "cancel", payload: { callID: payload.callID } }])
    fake.socket.receive("streamStart", { streamID: "s", callID: payload.callID, epoch: "e" })
    assert.deepEqual(streamKinds(fake.socket), [{ type: "streamEnd", payload: { streamID: "s", reason: "clientUnsubscribed" } }])
})

test("a listener of a part is called when the part changes", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const state = client.actor("a").state()
    const part = state.at("/list").at("/1")
    const seen = []
    part.subscribe(() => seen.push(part.getSnapshot()))
    begin(fake.socket)
    data(fake.socket, 1, { list: [{ n: 1 }, { n: 2 }], other: 1 })
    patch(fake.socket, 2, 1, [{ op: "replace", path: "/other", value: 2 }])
    patch(fake.socket, 3, 2, [{ op: "replace", path: "/list/0/n", value: 9 }])
    patch(fake.socket, 4, 3, [{ op: "replace", path: "/list/1/n", value: 3 }])
    patch(fake.socket, 5, 4, [{ op: "remove", path: "/list" }])
    assert.deepEqual(seen, [{ n: 2 }, { n: 3 }, undefined])
    assert.throws(() => state.at("list"))
})

test("filters are applied by the server, each with a separate stream", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const state = client.actor("a").state()
    const filtered = state.filter({ path: "/players/7", distinct: true, minIntervalMilliseconds: 100, where: { path: "/on", op: "eq", value: true } })
    filtered.subscribe(() => {})
    state.at("/players").filter({ path: "/8" }).filter({ distinct: true }).subscribe(() => {})
    const [first, second] = streamKinds(fake.socket)
    assert.deepEqual(first.payload.filter, { path: "/players/7", distinct: true, minIntervalMilliseconds: 100, where: { path: "/on", op: "eq", value: true } })
    assert.deepEqual(second.payload.filter, { path: "/players/8", distinct: true })
    fake.socket.receive("streamStart", { streamID: "f", callID: first.payload.callID, epoch: "e" })
    data(fake.socket, 3, { name: "x" }, "f")
    data(fake.socket, 9, { name: "y" }, "f")
    assert.deepEqual(filtered.getSnapshot(), { name: "y" })
    assert.equal(filtered.at("/name").getSnapshot(), "y")
    fake.socket.lose()
    await fake.pass(200)
    fake.socket.greet()
    const resumed = streamKinds(fake.socket)[0].payload
    assert.deepEqual([resumed.filter, resumed.lastSequence], [first.payload.filter, 9])
})

const Board = actorType({
    name: "Board",
    states: { state: { target: "observeState", value: struct({ items: array(struct({ at: date })) }) } },
    events: { moves: { target: "observeMoves", value: struct({ at: date }) } },
})
const when = "2026-01-01T00:00:00.000Z"

test("codecs preserve shared objects, also in parts and behind filters", async () => {
    const { fake, state } = await observing((client) => client.actor(Board, "b").state)
    data(fake.socket, 1, { items: [{ at: when }, { at: when }], n: 1 })
    const before = state.getSnapshot()
    assert.deepEqual(before.items[0].at, new Date(when))
    const part = state.at("/items/0/at")
    assert.deepEqual(part.getSnapshot(), new Date(when))
    assert.equal(part.getSnapshot(), part.getSnapshot())
    patch(fake.socket, 2, 1, [{ op: "replace", path: "/n", value: 2 }])
    assert.equal(state.getSnapshot().items, before.items)
    assert.notEqual(state.getSnapshot(), before)
    const filtered = state.filter({ path: "/items" })
    filtered.subscribe(() => {})
    begin(fake.socket, { streamID: "f" })
    data(fake.socket, 1, [{ at: when }], "f")
    assert.deepEqual(filtered.getSnapshot(), [{ at: new Date(when) }])
})

test("a value that cannot be decoded leaves the previous one", async () => {
    const told = []
    const before = console.error
    console.error = (error) => told.push(error)
    try {
        const { fake, state } = await observing((client) => client.actor(Board, "b").state)
        data(fake.socket, 1, { items: [] })
        data(fake.socket, 2, { items: 7 })
        assert.deepEqual(state.getSnapshot(), { items: [] })
        state.getSnapshot()
        assert.equal(told.length, 1)
        data(fake.socket, 3, { items: [{ at: when }] })
        assert.equal(state.getSnapshot().items.length, 1)
    } finally {
        console.error = before
    }
})

test("a failed stream reports the reason, and is requested again over the next connection", async () => {
    const { fake, state } = await observing()
    data(fake.socket, 1, "a")
    fake.socket.receive("streamEnd", { streamID: "s1", reason: "actorTerminated" })
    assert.equal(state.status.getSnapshot().phase, "failed")
    assert.equal(state.status.getSnapshot().error.code, "actorNotFound")
    assert.equal(state.getSnapshot(), "a")
    fake.socket.lose()
    assert.equal(state.status.getSnapshot().phase, "failed")
    await fake.pass(200)
    fake.socket.greet()
    assert.equal(begin(fake.socket).type, "invocation")
    data(fake.socket, 1, "b")
    assert.equal(state.status.getSnapshot().phase, "live")
    assert.equal(state.getSnapshot(), "b")
})

test("so is a stream that does not start", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const state = client.actor("nobody").state()
    state.subscribe(() => {})
    const [{ payload }] = streamKinds(fake.socket)
    fake.socket.receive("response", { callID: payload.callID, error: { code: "actorNotFound", message: "there is no such actor" } })
    assert.deepEqual(state.status.getSnapshot().error.message, "there is no such actor")
    // A new subscriber requests it again.
    for (const each of [state, state.at("/x"), client.actor("nobody").state()]) {
        each.subscribe(() => {})
        const [{ payload }] = streamKinds(fake.socket)
        each.subscribe(() => {})
        assert.deepEqual(streamKinds(fake.socket), [])
        fake.socket.receive("response", { callID: payload.callID, error: { code: "actorNotFound", message: "still" } })
    }
})

test("a stream with a temporary error is requested again", async () => {
    const { fake, state } = await observing()
    fake.socket.receive("streamError", { streamID: "s1", code: "rateLimited", errorMessage: "later", retryAfterMilliseconds: 3000 })
    assert.equal(state.status.getSnapshot().error.retryAfter, 3000)
    await fake.pass(2_999)
    assert.deepEqual(streamKinds(fake.socket), [])
    await fake.pass(3_001)
    begin(fake.socket)
})

test("a stream that an operator has ended is requested again one to two times the delay later", async () => {
    const { fake, state } = await observing()
    data(fake.socket, 1, "a")
    const errorMessage = "maintenance until 14:00"
    fake.socket.receive("streamError", { streamID: "s1", code: "unavailable", errorMessage, retryAfterMilliseconds: 5000 })
    const { phase, error } = state.status.getSnapshot()
    assert.deepEqual([phase, error.code, error.message, error.retryAfter], ["failed", "unavailable", errorMessage, 5000])
    assert.equal(state.getSnapshot(), "a")
    await fake.pass(4_999)
    assert.deepEqual(streamKinds(fake.socket), [])
    await fake.pass(5_001)
    begin(fake.socket)
    data(fake.socket, 2, "b")
    assert.equal(state.getSnapshot(), "b")
})

test("streams with the same name on different connections are distinguished", async () => {
    const { fake, client, state } = await observing()
    data(fake.socket, 1, "a")
    fake.socket.lose()
    await fake.pass(200)
    fake.socket.open()
    const other = client.actor("b").state()
    other.subscribe(() => {})
    const calls = fake.socket.take().slice(1).map(({ payload }) => payload.callID)
    // The second starts first, with the name that the first one had.
    fake.socket.receive("streamStart", { streamID: "s1", callID: calls[1], epoch: "f" })
    data(fake.socket, 1, "of b")
    assert.deepEqual([state.getSnapshot(), other.getSnapshot()], ["a", "of b"])
    fake.socket.receive("streamStart", { streamID: "s2", callID: calls[0], epoch: "e1" })
    data(fake.socket, 2, "of a", "s2")
    assert.deepEqual([state.getSnapshot(), other.getSnapshot()], ["of a", "of b"])
})

test("a stream that a draining server refuses is requested at the next one", async () => {
    const { fake, state } = await observing()
    data(fake.socket, 1, "a")
    const old = fake.socket
    old.receive("goAway", { reconnectAfterMilliseconds: 0 })
    old.receive("streamError", { streamID: "s1", code: "unavailable", errorMessage: "draining" })
    assert.equal(state.status.getSnapshot().phase, "stale")
    await fake.pass(200)
    fake.socket.greet()
    assert.equal(begin(fake.socket).type, "streamResume")
})

test("iterating over a state yields the newest value and the following ones", async () => {
    const { fake, state } = await observing()
    data(fake.socket, 1, 1)
    const seen = []
    const reading = (async () => {
        for await (const value of state) {
            seen.push(value)
            if (value === 5) break
        }
    })()
    await settle()
    data(fake.socket, 2, 2)
    await settle()
    data(fake.socket, 3, 3)
    data(fake.socket, 4, 4)
    data(fake.socket, 5, 5)
    await reading
    // The iteration waited for 3; 4 was replaced before the next request.
    assert.deepEqual(seen, [1, 2, 3, 5])
})

test("iterating ends with the error of the stream", async () => {
    const { fake, state } = await observing()
    const next = state[Symbol.asyncIterator]().next()
    fake.socket.receive("streamError", { streamID: "s1", code: "unauthorized", errorMessage: "no" })
    await assert.rejects(next, { code: "unauthorized" })
})

// Events

async function listening() {
    const fake = new FakeEnvironment()
    const client = await fake.live({ eventBuffer: 3 })
    const events = client.actor("a").events("observeMoves")
    const seen = []
    const errors = []
    const end = events.subscribe((event) => seen.push(event), (error) => errors.push(error.code))
    begin(fake.socket, { sequenceNumber: 40 })
    return { fake, client, events, seen, errors, end }
}

test("events arrive in order, from the one after the start of the stream", async () => {
    const { fake, events, seen } = await listening()
    assert.equal(events.status.getSnapshot().phase, "live")
    data(fake.socket, 41, "a")
    data(fake.socket, 42, "b")
    data(fake.socket, 42, "b")
    assert.deepEqual(seen, ["a", "b"])
})

test("a gap is an overflow, and always reported", async () => {
    const { fake, events, seen, errors } = await listening()
    data(fake.socket, 41, "a")
    data(fake.socket, 43, "c")
    assert.deepEqual([seen, errors], [["a"], ["overflow"]])
    assert.equal(events.status.getSnapshot().phase, "failed")
    assert.deepEqual(streamKinds(fake.socket), [{ type: "streamEnd", payload: { streamID: "s1", reason: "clientUnsubscribed" } }])
    // It is not restarted automatically, on another connection either.
    fake.chance = 0.1
    fake.socket.lose()
    await fake.pass(20)
    fake.socket.greet()
    assert.deepEqual(streamKinds(fake.socket), [])
    events.subscribe((event) => seen.push(event))
    begin(fake.socket, { streamID: "s2", sequenceNumber: 50 })
    data(fake.socket, 51, "k", "s2")
    assert.deepEqual(seen, ["a", "k"])
})

test("events continue over another connection", async () => {
    const { fake, seen, errors } = await listening()
    data(fake.socket, 41, "a")
    fake.socket.lose()
    await fake.pass(200)
    fake.socket.greet()
    const { type, payload } = begin(fake.socket, { sequenceNumber: 44 })
    assert.deepEqual([type, payload.lastSequence, payload.epoch], ["streamResume", 41, "e1"])
    data(fake.socket, 42, "b")
    data(fake.socket, 43, "c")
    assert.deepEqual([seen, errors], [["a", "b", "c"], []])
})

test("events of another incarnation of the actor do not continue silently", async () => {
    const { fake, errors } = await listening()
    fake.socket.lose()
    await fake.pass(200)
    fake.socket.greet()
    begin(fake.socket, { epoch: "e2", sequenceNumber: 1 })
    assert.deepEqual(errors, ["overflow"])
})

test("an iteration over events buffers for a slow reader up to a limit", async () => {
    const { fake, events } = await listening()
    const read = []
    const iterator = events[Symbol.asyncIterator]()
    for (let number = 41; number <= 44; number++) data(fake.socket, number, number)
    for (let count = 0; count < 3; count++) read.push((await iterator.next()).value)
    assert.deepEqual(read, [41, 42, 43])
    await assert.rejects(iterator.next(), { code: "overflow" })
    assert.deepEqual(await iterator.next(), { value: undefined, done: true })
})

test("the end of an iteration ends the stream", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const reading = (async () => {
        for await (const event of client.actor("a").events("observeMoves")) return event
    })()
    begin(fake.socket)
    data(fake.socket, 1, "x")
    assert.equal(await reading, "x")
    await fake.pass(100)
    assert.equal(streamKinds(fake.socket)[0].type, "streamEnd")
})

test("closing ends iterations", async () => {
    const { client, events, errors } = await listening()
    const next = events[Symbol.asyncIterator]().next()
    client.close()
    await assert.rejects(next, { code: "unavailable" })
    assert.deepEqual(errors, ["unavailable"])
})

test("a listener of events that throws misses none, and neither do other listeners", async () => {
    const told = []
    const before = console.error
    console.error = (error) => told.push(error)
    try {
        const { fake, events, seen } = await listening()
        events.subscribe(() => {
            throw new Error("mine")
        })
        data(fake.socket, 41, "a")
        data(fake.socket, 42, "b")
        assert.deepEqual(seen, ["a", "b"])
        assert.equal(told.length, 2)
    } finally {
        console.error = before
    }
})

test("an event that cannot be decoded ends its listeners, and is not skipped", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const Broken = actorType({ name: "B", events: { moves: { target: "observeMoves", value: { read: (n) => { if (n === 2) throw new Error("no"); return n } } } } })
    const events = client.actor(Broken, "b").moves
    const seen = []
    const errors = []
    events.subscribe((event) => seen.push(event), (error) => errors.push(error.code))
    begin(fake.socket)
    for (const number of [1, 2, 3]) data(fake.socket, number, number)
    assert.deepEqual([seen, errors], [[1], ["internal"]])
})

test("a stream whose request exceeds the message limit fails, and does not end the connection", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live({}, { messageSize: 2 << 20 })
    const filter = (bytes) => client.actor("todos").state().filter({ where: { path: "/x", op: "eq", value: "x".repeat(bytes) } })
    const [fits, tooLarge] = [filter(1.5 * (1 << 20)), filter(2 << 20)]
    for (const state of [fits, tooLarge]) state.subscribe(() => {})
    await settle()
    const look = () => assert.deepEqual([fits, tooLarge].map(({ status }) => status.getSnapshot().error?.code), [undefined, "invalidArguments"])
    look()
    assert.equal(fake.socket.take("invocation").length, 1)
    // Also on a new connection, before the server has sent its limits.
    client.reconnect()
    await settle()
    fake.socket.open()
    assert.equal(fake.socket.take("invocation").length, 0)
    fake.socket.receive("hello", { limits: { messageSize: 2 << 20 } })
    await settle()
    assert.equal(fake.socket.take("invocation").length, 1)
    look()
})

test("an iteration over a state of a closed client ends with the reason, also beside another observer", async () => {
    const fake = new FakeEnvironment()
    const client = await fake.live()
    const state = client.actor("todos").state()
    state.subscribe(() => {})
    client.close()
    for (let turn = 0; turn < 2; turn++) await assert.rejects(state[Symbol.asyncIterator]().next(), { code: "unavailable" })
})
